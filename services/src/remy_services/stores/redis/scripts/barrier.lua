-- Writes something that needs no memory, since a full server must be able to confirm deletions.
-- KEYS: where.
local year_in_seconds = '31536000'
if redis.call('EXPIRE', KEYS[1], year_in_seconds) == 0 then
  redis.call('SET', KEYS[1], '1')
end
return {'ok'}
