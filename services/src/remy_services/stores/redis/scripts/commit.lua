-- Commits a change if the token is the job's newest and the revision is its present one.
-- KEYS: job, events, epochs, snapshots. ARGV: token, revision, commit (see apply.lua).
local refusal = refused(KEYS[1], ARGV[1])
if refusal then
  return refusal
end
local revision = redis.call('HGET', KEYS[1], 'revision')
if revision ~= ARGV[2] then
  return {'conflict', revision}
end
apply(KEYS[1], KEYS[2], KEYS[3], KEYS[4], 3)
return {'ok'}
