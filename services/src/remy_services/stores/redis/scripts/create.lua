-- Creates a job, or returns the one that the same request created earlier.
-- KEYS: job, events, epochs, snapshots, all jobs, all requests.
-- ARGV: job id, request key (empty, or with a leading colon), commit (see apply.lua).
local existing = ARGV[2] ~= '' and redis.call('HGET', KEYS[6], ARGV[2])
if existing then
  return {'ok', existing}
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  return {'exists'}
end
apply(KEYS[1], KEYS[2], KEYS[3], KEYS[4], 3)
redis.call('HSET', KEYS[1], 'token', '0', 'holder', '', 'request', ARGV[2])
redis.call('SADD', KEYS[5], ARGV[1])
if ARGV[2] ~= '' then
  redis.call('HSET', KEYS[6], ARGV[2], ARGV[1])
end
return {'ok', ARGV[1]}
