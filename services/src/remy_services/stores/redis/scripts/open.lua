-- The schema version of what is kept here; the given one if nothing is. KEYS: it. ARGV: ours.
local version = redis.call('GET', KEYS[1])
if not version then
  redis.call('SET', KEYS[1], ARGV[1])
  version = ARGV[1]
end
return {'ok', version}
