-- Notes that entries of a cache were used. KEYS: order of use, counters. ARGV: keys of entries.
local clock = redis.call('HINCRBY', KEYS[2], 'clock', 1)
for i = 1, #ARGV do
  redis.call('ZADD', KEYS[1], 'XX', clock, ARGV[i])
end
return {'ok'}
