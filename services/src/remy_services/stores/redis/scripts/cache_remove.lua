-- Removes entries of a cache. KEYS: entries, order of use, counters.
-- ARGV: overhead of an entry, then keys of entries.
for i = 2, #ARGV do
  local bytes = redis.call('HSTRLEN', KEYS[1], ARGV[i])
  if redis.call('HDEL', KEYS[1], ARGV[i]) == 1 then
    redis.call('ZREM', KEYS[2], ARGV[i])
    redis.call('HINCRBY', KEYS[3], 'bytes', -(#ARGV[i] + bytes + tonumber(ARGV[1])))
  end
end
return {'ok'}
