-- Makes a commit. Begins every script that commits.
-- ARGV from `first` on: the new record and revision; the snapshot's revision (empty: none) and the
-- snapshot; how many events, and these; then numbers of epochs, each with its epoch.
-- Nothing here can fail once the first line was carried out.
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
