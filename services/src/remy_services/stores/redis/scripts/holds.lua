-- Whether a token is a job's newest. Begins every script that only a holder may run.
-- The answer to give if it is not, else nil. Nobody has a job whose token is 0.
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
