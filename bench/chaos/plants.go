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
}
