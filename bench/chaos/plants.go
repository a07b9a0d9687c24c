package main

// plant is a bug in the product, and the scenario that must be red with it.
type plant struct {
	name string
	// file is relative to the root module; old stands in it exactly once, and is replaced by new.
	file, old, new string
	scenario       string
}

// plants are all of them. Each is a mistake that somebody could make.
var plants = []plant{
	{
		name: "unfenced-settle", // whoever settles may, as long as the task is leased by anybody
		file: "redisstore/lua/settle.lua", scenario: "random-mix",
		old: "if not taken[id] and leases[n] == ARGV[3 * n + 6] then",
		new: "if not taken[id] and leases[n] then",
	},
	{
		name: "settle-retried-without-token", // after a lost reply it goes by whatever lease the task has by then
		file: "redisstore/settle.go", scenario: "reply-lost",
		old: `	v, err := s.run(ctx, evenUncertain, s.scripts.settle, keys, args...)
`,
		new: `	v, err := s.run(ctx, onlyRefused, s.scripts.settle, keys, args...)
	for tries := 0; err != nil && ctx.Err() == nil && tries < 50; tries++ {
		time.Sleep(20 * time.Millisecond)
		args[1] = 0
		for i := range r.Items {
			if l, _ := s.Lease(ctx, r.Queue, r.Items[i].ID); l != nil {
				args[8+3*i] = l.Lease.Fence
			}
		}
		v, err = s.run(ctx, onlyRefused, s.scripts.settle, keys, args...)
	}
`,
	},
	{
		name: "retry-in-two-calls", // out of one place with one call, and into the next with another, which may fail
		file: "redisstore/settle.go", scenario: "full-store",
		old: `		args = append(args, (*string)(&item.ID), &item.Lease.Fence, &ends[i]) // pointers cost no allocation each
	}
	k := s.queueKeys(r.Queue)
	keys := []string{k.due, k.leased, k.leases, k.tasks, k.state, k.done, k.dead, k.names, k.meta, s.settleMemo(r.Queue, r.Worker)}
	v, err := s.run(ctx, evenUncertain, s.scripts.settle, keys, args...)
	if err != nil {
		return dispatch.SettleReply{}, err
	}
`,
		new: `		if text, ok := strings.CutPrefix(ends[i], "retry "); ok {
			words := strings.SplitN(text, " ", 3)
			ends[i] = strings.Join(append([]string{"dead 3600000 0"}, words[2:]...), " ")
		}
		args = append(args, (*string)(&item.ID), &item.Lease.Fence, &ends[i])
	}
	k := s.queueKeys(r.Queue)
	keys := []string{k.due, k.leased, k.leases, k.tasks, k.state, k.done, k.dead, k.names, k.meta, s.settleMemo(r.Queue, r.Worker)}
	v, err := s.run(ctx, evenUncertain, s.scripts.settle, keys, args...)
	if err != nil {
		return dispatch.SettleReply{}, err
	}
	for i := range r.Items {
		item := &r.Items[i]
		if item.Outcome != dispatch.Retry {
			continue
		}
		if n, _ := s.client.Do(ctx, "ZREM", k.dead, string(item.ID)).Int(); n == 1 {
			s.client.Do(ctx, "ZADD", k.due, time.Now().Add(item.After).UnixMilli(), string(item.ID))
		}
	}
`,
	},
	{
		name: "settle-begins-with-an-addition", // which a full store refuses, and then it never drains
		file: "redisstore/lua/settle.lua", scenario: "full-store",
		old: `if #closed > 0 then
  redis.call('ZREM', KEYS[2], unpack(closed))
`,
		new: `if #closed > 0 then
  redis.call('HINCRBY', KEYS[9], 'settled', #closed)
  redis.call('ZREM', KEYS[2], unpack(closed))
`,
	},
	{
		name: "lost-reply-means-settled", // what was sent has arrived
		file: "redisstore/settle.go", scenario: "script-flush",
		old: `	v, err := s.run(ctx, evenUncertain, s.scripts.settle, keys, args...)
`,
		new: `	v, err := s.run(ctx, onlyRefused, s.scripts.settle, keys, args...)
	if err != nil && strings.Contains(err.Error(), dispatch.ErrUncertain.Error()) {
		applied, _ := digits(strings.Repeat("1", len(r.Items)), len(r.Items))
		return dispatch.SettleReply{Applied: applied, Dropped: make([]bool, len(r.Items))}, nil
	}
`,
	},
	{
		name: "scripts-are-loaded-once", // and nobody flushes them
		file: "redisstore/scripts.go", scenario: "script-flush",
		old: `			reply, err = s.eval(ctx, sc, keys, args) // flushed, restarted or failed over
`,
		new: `			if _, loaded := s.convoys.LoadOrStore(sc.sha, true); !loaded {
				reply, err = s.eval(ctx, sc, keys, args)
			}
`,
	},
	{
		name: "readonly-is-final", // a server that is a replica for a moment has said no for good
		file: "redisstore/persist.go", scenario: "redis-restart",
		old: `"NOREPLICAS", "READONLY", "TRYAGAIN",`,
		new: `"NOREPLICAS", "TRYAGAIN",`,
	},
	{
		name: "tryagain-is-final", // a slot that moves has said no for good
		file: "redisstore/persist.go", scenario: "cluster-reshard",
		old: `"NOREPLICAS", "READONLY", "TRYAGAIN",`,
		new: `"NOREPLICAS", "READONLY",`,
	},
	{
		name: "out-and-in-again", // a key that a script has emptied is not there to be filled again while its slot moves
		file: "redisstore/lua/reschedule.lua", scenario: "cluster-reshard",
		old: `redis.call('ZREM', KEYS[1], '')`,
		new: `redis.call('ZREM', KEYS[1], ARGV[2])`,
	},
	{
		name: "cluster-is-looked-at-once-a-minute", // as the client does by itself
		file: "redisstore/open.go", scenario: "master-kill",
		old: `reloadCluster = time.Second `,
		new: `reloadCluster = time.Minute `,
	},
	{
		name: "asked-is-answered", // replicas were asked, and how many have it nobody looks at
		file: "redisstore/durable.go", scenario: "failover-wait",
		old: `	if n < c.durability.Replicas {
`,
		new: `	if n < 0 {
`,
	},
	{
		name: "token-by-counter", // which a failover sets back
		file: "redisstore/lua/claim.lua", scenario: "failover-loss",
		old: `local token = math.max((tonumber(meta[8]) or 0) + 1, now * 1000)`,
		new: `local token = (tonumber(meta[8]) or now * 1000) + 1`,
	},
	{
		name: "local-clock-for-due", // what is due is decided by the clock of who asks
		file: "redisstore/leader.go", scenario: "clock-skew",
		old: `	if e.log == nil {
		e.log = s.log
	}
	return e
`,
		new: `	if e.log == nil {
		e.log = s.log
	}
	s.now = func() string { return instant(e.clock.Now()) }
	return e
`,
	},
	{
		name: "sweep-without-recheck", // what was read as expired is settled, whoever has it by then
		file: "redisstore/lua/settle.lua", scenario: "sweeper-race",
		old: "if ARGV[2] == '-1' then forgetOpen(ids, leases, KEYS[2], now) end",
		new: "if ARGV[2] == '-1' then for n = 1, #ids do leases[n] = leases[n] and ARGV[3 * n + 6] end end",
	},
	{
		name: "cron-id-not-idempotent", // each firing of a tick makes a task of its own
		file: "cron.go", scenario: "two-leaders",
		old: `fmt.Sprintf("%s-%d", name, tick.Unix())`,
		new: `fmt.Sprintf("%s-%d-%p", name, tick.Unix(), new(int))`,
	},
	{
		name: "extend-without-token", // whoever asks gets more time, as long as the task is leased by anybody
		file: "redisstore/lua/extend.lua", scenario: "stale-owner",
		old: "if redis.call('HGET', KEYS[2], ARGV[i]) == ARGV[i + 1] then",
		new: "if redis.call('HEXISTS', KEYS[2], ARGV[i]) == 1 then",
	},
	{
		name: "release-without-token", // a task can be put off by who has lost it
		file: "redisstore/lua/settle.lua", scenario: "stale-owner",
		old: "if not taken[id] and leases[n] == ARGV[3 * n + 6] then",
		new: "if not taken[id] and leases[n] and (leases[n] == ARGV[3 * n + 6] or string.sub(ARGV[3 * n + 7], 1, 7) == 'release') then",
	},
	{
		name: "late-ticks-dropped", // a leader that follows fires what is due now, not what the one before has left
		file: "firecron.go", scenario: "cron-handover",
		old: "fresh, _ := schedule.Last(onTime, now, int(missedAfter/time.Second)+1)",
		new: "fresh, _ := schedule.Last(onTime, now, 1)",
	},
	{
		name: "timeouts-do-not-count", // an attempt without an answer is given back as if it had not been made
		file: "deliver.go", scenario: "endless-receiver",
		old: "case res.Kind == worker.KindCancelled:",
		new: "case res.Kind == worker.KindCancelled, res.Kind == worker.KindTimeout:",
	},
	{
		name: "no-place-left-free", // queues whose tasks hang have all places of a worker
		file: "options.go", scenario: "endless-receiver",
		old: "func (o Options) shared() bool { return len(o.Queues) != 1 }",
		new: "func (o Options) shared() bool { return false }",
	},
	{
		name: "dead-stay-dead", // a worker that was taken for dead goes on, and is not registered again
		file: "cluster/beat.go", scenario: "frozen-worker",
		old: "		b.failed(err)\n		b.state = \"\"\n",
		new: "		b.failed(err)\n",
	},
	{
		name: "announcement-dropped", // what was stored is told to nobody, and found by the leader's slow pass
		file: "enqueue.go", scenario: "idle-black-hole",
		old: "if reply.Moved || c.overdue(reply.Wait) {",
		new: "if c.overdue(reply.Wait) {",
	},
	{
		name: "announced-before-stored", // who looks in between finds nothing, and notes that
		file: "enqueue.go", scenario: "wake-lost",
		old: `	reply, refused, err := c.storeTasks(ctx, c.acked, queue, submissions, EnqueueOptions{Strict: c.strict})
	announced := c.announceEnqueue(queue, reply, err)
`,
		new: `	announced := c.announceEnqueue(queue, EnqueueReply{Moved: true}, nil)
	_, refused, err := c.storeTasks(ctx, c.acked, queue, submissions, EnqueueOptions{Strict: c.strict})
`,
	},
	{
		name: "announcement-not-noted", // who does not hear the message has nothing to look up
		file: "redisstore/lua/announce.lua", scenario: "wake-lost",
		old: "  if not noted or at < tonumber(noted) then\n",
		new: "  if noted and at < tonumber(noted) then\n",
	},
	{
		name: "concurrency-counted-wrong", // one lease is overlooked
		file: "redisstore/lua/claim.lua", scenario: "limits-churn",
		old: "(tonumber(meta[6]) or 0), open,",
		new: "(tonumber(meta[6]) or 0), open - 1,",
	},
	{
		name: "rate-counted-wrong", // the first task of each claim is free
		file: "redisstore/lua/claim.lua", scenario: "limits-churn",
		old: "{'tat', tat + charged * interval}",
		new: "{'tat', tat + (charged - 1) * interval}",
	},
	{
		name: "name-leaks", // clean-up knows of tasks only
		file: "redisstore/lua/cleanup.lua", scenario: "dedup-crash",
		old: "for _, zset in ipairs({KEYS[3], KEYS[4], KEYS[5], KEYS[6]}) do\n  local over",
		new: "for _, zset in ipairs({KEYS[3], KEYS[4], KEYS[5]}) do\n  local over",
	},
	{
		name: "name-forgotten", // a name is free as soon as its task has ended
		file: "redisstore/lua/settle.lua", scenario: "dedup-crash",
		old: "        keep(names, now + kept, id)\n",
		new: "        keep(names, now, id)\n",
	},
	{
		name: "claim-repeated-anew", // a claim that was sent twice leases twice
		file: "redisstore/lua/claim.lua", scenario: "lease-history",
		old: "elseif last == number then",
		new: "elseif last == number and number < 0 then",
	},
	{
		name: "settle-without-memory", // one that was sent twice is told that its lease is not current
		file: "redisstore/lua/settle.lua", scenario: "lease-history",
		old: "if last == ARGV[2] then",
		new: "if last == ARGV[2] .. '!' then",
	},
	{
		name: "extend-unfenced", // whoever asks may, as long as the task is leased by anybody
		file: "redisstore/lua/extend.lua", scenario: "lease-history",
		old: "if redis.call('HGET', KEYS[2], ARGV[i]) == ARGV[i + 1] then",
		new: "if redis.call('HGET', KEYS[2], ARGV[i]) then",
	},
	{
		name: "due-too-soon", // what is due in a moment is given out
		file: "redisstore/lua/claim.lua", scenario: "delayed-and-throttled",
		old: "places > 0 and now or -1",
		new: "places > 0 and now + 250 or -1",
	},
	{
		name: "torn-entries-stay", // nobody counts
		file: "redisstore/lua/look.lua", scenario: "hostile-input",
		old: "return {first, whole and 0 or 1}",
		new: "return {first, 0}",
	},
	{
		name: "death-not-told", // one queue that fails keeps the leader from looking at all others
		file: "reap.go", scenario: "hostile-input",
		old: "if news { // once",
		new: "if news && err == nil { // once",
	},
}
