-- Writes to a key so that WAIT and WAITAOF have a write to wait for. EXPIRE needs no memory, so
-- this also works on a full server, which must be able to confirm deletions.
-- KEYS: barrier key.
local year_in_seconds = '31536000'
if redis.call('EXPIRE', KEYS[1], year_in_seconds) == 0 then
  redis.call('SET', KEYS[1], '1')
end
return {'ok'}
