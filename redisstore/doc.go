// Package redisstore keeps Dispatch's tasks in Redis: one server, Sentinel or a Redis Cluster.
//
//	store, err := redisstore.Open(ctx, "redis://localhost:6379/0", redisstore.Options{})
//
// # Keys
//
// PREFIX is "dispatch" unless Options says otherwise. All keys of a queue share one hash tag, and all keys of the fleet
// another, so each script works on one slot. Every script names all its keys.
//
//	PREFIX:{queue}:due         zset    task ID → due time, ms; below zero: at once
//	PREFIX:{queue}:leased      zset    task ID → end of lease, ms
//	PREFIX:{queue}:leases      hash    task ID → token, worker, claim number, attempt
//	PREFIX:{queue}:tasks       hash    task ID → record, changed by edits and replays only
//	PREFIX:{queue}:state       hash    task ID → progress, from the first failed attempt on
//	PREFIX:{queue}:done        zset    succeeded and retained: task ID → expiry, ms
//	PREFIX:{queue}:dead        zset    dead and retained: task ID → expiry, ms
//	PREFIX:{queue}:cancelled   zset    cancelled and retained: task ID → expiry, ms
//	PREFIX:{queue}:names       zset    tombstones of named tasks: task ID → expiry, ms
//	PREFIX:{queue}:meta        hash    settings, pause, generation, token, rate, counters, until when somebody waits
//	PREFIX:{queue}:stored:S    string  last call of lane S of a store that is numbered
//	PREFIX:{queue}:claimed:W   string  last claim of worker W, lives as long as its leases
//	PREFIX:{queue}:settled:W   string  last settle of worker W, lives a minute
//	PREFIX:{queue}:mark        string  written and removed by one script; so is PREFIX:{~}:mark
//	PREFIX:{~}:queues          set     names of all queues
//	PREFIX:{~}:active          zset    queue → when it has something to do, a hint
//	PREFIX:{~}:expiring        zset    queue → when it has something to clean up, a hint
//	PREFIX:{~}:cron            hash    cron entries: name → entry
//	PREFIX:{~}:cron:next       zset    name of entry → when the leader has to look at it, ms; 0 is now
//	PREFIX:{~}:cron:last       string  the highest revision of an entry ever
//	PREFIX:{~}:workers         zset    worker ID → when it was last seen, ms
//	PREFIX:{~}:worker:W        hash    row of worker W, lives a day after its last beat
//	PREFIX:{~}:leader          string  ID of the worker that leads, lives as long as the leadership
//	PREFIX:{~}:term            string  the highest term of a leader
//	PREFIX:{~}:plan            string  term, revision and plan of the leader
//	PREFIX:{~}:schema          string  version of this layout
//	PREFIX:{~}:wake            channel messages of new hints
//	PREFIX:{~}:ended           channel messages of tasks that have ended, while somebody waits for them
//
// # Scripts
//
// Each transition is one file in lua/ and one Go file. A script decides everything before its first write, after which
// nothing can fail, because Redis does not roll back. Enqueue, the creation of a queue and the storing of a cron entry
// begin with a write that a full server refuses; all others begin with a removal, or with PEXPIRE, which a full server never refuses,
// so that it can be drained. Such a removal may remove nothing, and is there to come first. No script touches a key again that it has
// emptied: while the slot of its keys moves to another master of a cluster, that command would be refused, and half of a transition
// would stay. A script that runs twice for one call does no harm: claims, settles, and what changes tasks or queues for a client, are
// numbered and answer the same, extend goes by the lease, and what is done to a cron entry by its revision.
//
// # What this does not promise
//
// Redis replicates asynchronously: a failover may lose the last writes it acknowledged, enqueued tasks among them, unless
// a dispatch.Durability asks for replicas. What was lost that way may also come back: a task that had succeeded may run
// again. Fencing tokens still rise, unless the clock of the new primary is behind by more than the failover takes: they follow
// it. Two workers may take themselves for the leader until the first one's TTL is over; terms keep apart what they write. A full
// server elects no new leader. Eviction loses tasks: set maxmemory-policy noeviction. One queue is one slot, and so one core of
// one master. Versions of Redis before and after 7.0 are not tested. While a server hangs, a call keeps to its context's deadline,
// but hears of a cancellation only when an answer is 3 s late (the client's ReadTimeout).
package redisstore
