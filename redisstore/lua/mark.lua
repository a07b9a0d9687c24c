-- mark: write something and leave nothing. WAIT goes by the last write of its connection, and the script before may have
-- found everything written.
-- KEYS[1] mark   string gone when the script ends
-- returns nothing
-- keeps   everything
-- cost    O(1)
redis.call('DEL', KEYS[1]) -- a removal first: memory pressure never refuses it, and then not what follows
redis.call('SET', KEYS[1], '')
redis.call('DEL', KEYS[1])
