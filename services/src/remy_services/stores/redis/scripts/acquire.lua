-- Gives a job a new token. KEYS: job, the last token of all. ARGV: holder.
-- Tokens are never used twice, not even for a job that is deleted and comes back.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return {'missing'}
end
local token = string.format('%.0f', redis.call('INCR', KEYS[2]))
redis.call('HSET', KEYS[1], 'token', token, 'holder', ARGV[1])
return {'ok', token}
