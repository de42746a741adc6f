-- Writes something, to see that it can be done. KEYS: where.
redis.call('SET', KEYS[1], '1')
return {'ok'}
