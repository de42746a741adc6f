-- Keeps entries of a cache, and removes those that were not used for longest while it is too large.
-- KEYS: entries, order of use, counters. ARGV: most bytes, overhead of an entry, then keys, each
-- with its value.
-- A server that removes keys when it is full may have taken one of the three.
if redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[3]) < 3 then
  redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3])
end
local overhead = tonumber(ARGV[2])
local clock = redis.call('HINCRBY', KEYS[3], 'clock', 1)
local function size_of(key)
  return #key + redis.call('HSTRLEN', KEYS[1], key) + overhead
end
local bytes = 0
for i = 3, #ARGV, 2 do
  local key = ARGV[i]
  if redis.call('HEXISTS', KEYS[1], key) == 1 then
    bytes = bytes - size_of(key)
  end
  redis.call('HSET', KEYS[1], key, ARGV[i + 1])
  redis.call('ZADD', KEYS[2], clock, key)
  bytes = bytes + size_of(key)
end
local total = redis.call('HINCRBY', KEYS[3], 'bytes', bytes)
-- A bound that was lowered is reached in steps, so that nobody waits for long.
local removed = 0
local freed = 0
while total - freed > tonumber(ARGV[1]) and removed < 5000 do
  local key = redis.call('ZPOPMIN', KEYS[2])[1]
  if not key then
    break
  end
  freed = freed + size_of(key)
  redis.call('HDEL', KEYS[1], key)
  removed = removed + 1
end
redis.call('HINCRBY', KEYS[3], 'bytes', 0 - freed)
return {'ok'}
