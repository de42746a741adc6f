-- Acquires a job with a new fencing token. KEYS: job, last token of all jobs. ARGV: holder.
-- Tokens are never reused, not even for a job that is deleted and created again.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return {'missing'}
end
local token = string.format('%.0f', redis.call('INCR', KEYS[2]))
redis.call('HSET', KEYS[1], 'token', token, 'holder', ARGV[1])
return {'ok', token}
