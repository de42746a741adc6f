-- Returns nil if the token is the job's newest, else the script's reply. Prefix of every script
-- that only the holder of the token may run. Token 0 means that the job has no holder.
local function refused(job, token)
  local newest = redis.call('HGET', job, 'token')
  if not newest then
    return {'missing'}
  end
  if token == '0' or token ~= newest then
    return {'fenced', newest}
  end
  return nil
end
