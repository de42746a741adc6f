-- Checks that writes succeed. KEYS: check key.
redis.call('SET', KEYS[1], '1')
return {'ok'}
