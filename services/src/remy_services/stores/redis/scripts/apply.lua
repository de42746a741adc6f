-- Applies a commit. Prefix of every script that commits.
-- ARGV from `first` on: new record, new revision, snapshot revision (empty without snapshot),
-- snapshot, number of events, events, then pairs of epoch number and epoch.
-- No later command can fail once the first has succeeded, so the commit is atomic.
local function apply(job, events, epochs, snapshots, first)
  redis.call('HSET', job, 'record', ARGV[first], 'revision', ARGV[first + 1])
  if ARGV[first + 2] ~= '' then
    redis.call('HSET', snapshots, ARGV[first + 2], ARGV[first + 3])
  end
  local last_event = first + 4 + tonumber(ARGV[first + 4])
  for i = first + 5, last_event do
    redis.call('RPUSH', events, ARGV[i])
  end
  for i = last_event + 1, #ARGV, 2 do
    redis.call('HSET', epochs, ARGV[i], ARGV[i + 1])
  end
end
