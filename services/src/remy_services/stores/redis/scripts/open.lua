-- Returns the store's schema version, and sets it in a new store.
-- KEYS: schema version. ARGV: this program's version.
local version = redis.call('GET', KEYS[1])
if not version then
  redis.call('SET', KEYS[1], ARGV[1])
  version = ARGV[1]
end
return {'ok', version}
