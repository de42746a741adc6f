-- Deletes a job. KEYS: job, events, epochs, snapshots, all jobs, all requests.
-- ARGV: token, job id.
local refusal = refused(KEYS[1], ARGV[1])
if refusal then
  return refusal
end
local request = redis.call('HGET', KEYS[1], 'request')
if request ~= '' then
  redis.call('HDEL', KEYS[6], request)
end
redis.call('SREM', KEYS[5], ARGV[2])
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
return {'ok'}
