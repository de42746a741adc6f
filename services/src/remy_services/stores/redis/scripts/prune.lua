-- Deletes all but the newest snapshots of a job.
-- KEYS: job, snapshots. ARGV: token, number of snapshots to keep.
local refusal = refused(KEYS[1], ARGV[1])
if refusal then
  return refusal
end
local revisions = redis.call('HKEYS', KEYS[2])
table.sort(revisions, function(a, b) return tonumber(a) > tonumber(b) end)
for i = tonumber(ARGV[2]) + 1, #revisions do
  redis.call('HDEL', KEYS[2], revisions[i])
end
return {'ok'}
