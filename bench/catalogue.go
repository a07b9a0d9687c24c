package main

import (
	"context"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

// The units of figures. Of the first more is better, of all others less.
const (
	perSecond = "tasks/s"
	millis    = "ms"
	bytesEach = "B/task"
	microsOf  = "µs/task"
	commands  = "commands/s"
)

// catalogue is every figure, in the order in which they are measured.
func catalogue() []figure {
	var all []figure
	for _, part := range [][]figure{coreFigures(), httpFigures(), latencyFigures(), idleFigures(), memoryFigures(), scaleFigures()} {
		all = append(all, part...)
	}
	return all
}

// ours is an entry of Dispatch on a store of its own.
func ours(how string, run func(context.Context, *env, *redisstore.Store, int) (float64, error)) entry {
	return entry{how: how, run: onStore(run)}
}

func limit(how string, run func(context.Context, *env, int) (float64, error)) entry {
	return entry{peer: "limit", how: how, run: run}
}

// manyPlaces is how many places a process has that is to be fast with tasks that take no time.
const manyPlaces = 200

func coreFigures() []figure {
	const places, sleepPlaces = 64, 50
	sleep := 2 * time.Millisecond
	limited := func(how string, b backlog) []entry {
		b.options = placesFor(manyPlaces)
		return []entry{ours("200 places, one queue served, "+how, processWith(b))}
	}
	return []figure{
		{"enqueue/single64", perSecond, "core", 100_000, 10_000, []entry{
			ours("Enqueue from 64 goroutines", enqueueSingle),
			limit("RPUSH from 64 goroutines, a trip each", pushSingle),
		}},
		{"enqueue/many", perSecond, "core", 300_000, 30_000, []entry{
			ours("EnqueueMany, 10,000 a call", enqueueMany),
			limit("RPUSH, pipelines of 150, 3 at once", pushMany),
		}},
		{"process/noop", perSecond, "core", 200_000, 20_000, []entry{
			ours("200 places, one queue served", processNoop),
			ours("defaults (64 places)", processWith(backlog{})),
			limit("stream, XREADGROUP of 150 and XACK in one pipeline, 2 consumers", readStream),
		}},
		{"process/noop_rate", perSecond, "core", 200_000, 20_000,
			limited("rate limit of 1,000,000/s", backlog{queue: dispatch.Queue{Rate: 1_000_000}})},
		{"process/noop_concurrency", perSecond, "core", 200_000, 20_000,
			limited("at most 100,000 running", backlog{queue: dispatch.Queue{MaxConcurrent: 100_000}})},
		{"process/noop_named", perSecond, "core", 200_000, 20_000,
			limited("tasks with names, which stay taken for 1 h", backlog{named: true})},
		{"process/noop_1proc", perSecond, "core", 200_000, 20_000,
			[]entry{ours("a process of its own, 64 places", processFleet(1, places, 0))}},
		{"process/noop_2procs", perSecond, "core", 200_000, 20_000,
			[]entry{ours("two processes, 64 places each", processFleet(2, places, 0))}},
		{"process/sleep2ms", perSecond, "core", 50_000, 5_000,
			[]entry{ours("one process, 50 places, the handler sleeps 2 ms", processFleet(1, sleepPlaces, sleep))}},
		{"process/sleep2ms_2procs", perSecond, "core", 100_000, 10_000,
			[]entry{ours("two processes, 50 places each, the handler sleeps 2 ms", processFleet(2, sleepPlaces, sleep))}},
		{"cpu/redis_us_per_task", microsOf, "core", 200_000, 20_000,
			[]entry{ours("Redis CPU over process/noop", redisPerTask)}},
		{"claim/allocs_per_task", "allocs/task", "core", 200_000, 20_000,
			[]entry{ours("heap allocations of the process over process/noop", allocsPerTask)}},
		{"cpu/redis_us_per_task_30q", microsOf, "core", 200_000, 20_000,
			[]entry{ours("Redis CPU, one server, 30 queues", singlePerTask)}},
		{"cluster/redis_us_per_task", microsOf, "core", 200_000, 20_000,
			[]entry{{how: "Redis CPU, sum of three masters, 30 queues", run: clusterPerTask}}},
	}
}

func httpFigures() []figure {
	return []figure{
		{"process/http", perSecond, "http", 50_000, 5_000, []entry{
			ours("64 places, not signed", processHTTP("", 64)),
			ours("200 places, not signed", processHTTP("", manyPlaces)),
			limit("net/http client and server, 64 goroutines, the same headers", bareHTTP(64)),
			limit("net/http client and server, 200 goroutines, the same headers", bareHTTP(manyPlaces)),
		}},
		{"process/http_signed", perSecond, "http", 50_000, 5_000, []entry{
			ours("64 places, signed by Standard Webhooks", processHTTP("key", 64)),
		}},
	}
}

func latencyFigures() []figure {
	const (
		idleHow  = "open loop, 50/s at random distances; from the intended send time to the handler's start"
		lateHow  = "200/s at random times; from the scheduled time to the handler's start, none early"
		loadHow  = "open loop, half of what a closed loop of 64 callers and the dispatcher reach together"
		noisyHow = "open loop, 100/s, beside 100,000 due tasks whose receiver takes 5 s"
	)
	of := func(name, suffix string, percentile float64, n, quick int, how string, measure measureLatency) figure {
		return figure{name + suffix, millis, "latency", n, quick, []entry{{how: how, run: percentileOf(name, percentile, measure)}}}
	}
	return []figure{
		of("latency/idle_pickup", "_p50", 50, 1000, 100, idleHow, idlePickup),
		of("latency/idle_pickup", "_p99", 99, 1000, 100, idleHow, idlePickup),
		of("latency/late", "_p50", 50, 4000, 400, lateHow, lateness),
		of("latency/late", "_p99", 99, 4000, 400, lateHow, lateness),
		of("latency/load50", "_p99", 99, 200_000, 20_000, loadHow, halfLoad),
		of("latency/noisy_pickup", "_p99", 99, 100_000, 2_000, noisyHow, noisyPickup),
	}
}

// idleFigures count for a minute, the longest interval at which an idle process does anything.
func idleFigures() []figure {
	const how = "commands sent, per process of two with an elector; "
	return []figure{
		{"idle/cmds_1q", commands, "idle", 60, 2, []entry{ours(how+"1 queue", idleCommands(1))}},
		{"idle/cmds_20q", commands, "idle", 60, 2, []entry{ours(how+"20 queues", idleCommands(20))}},
		{"idle/cmds_10kq", commands, "idle", 60, 2, []entry{ours(how+"10,000 queues", idleCommands(10_000))}},
	}
}

func memoryFigures() []figure {
	return []figure{
		{"memory/pending", bytesEach, "memory", 200_000, 10_000, []entry{{how: "used_memory per due task, payload included", run: memoryPending}}},
		{"memory/scheduled", bytesEach, "memory", 200_000, 10_000, []entry{{how: "used_memory per task due later", run: memoryScheduled}}},
		{"memory/retained", bytesEach, "memory", 200_000, 10_000, []entry{{how: "used_memory per succeeded task, retained for 1 h", run: memoryRetained}}},
	}
}

func scaleFigures() []figure {
	const manyHow = "10,000 queues, 1 task/s each; one dispatcher in a process of its own; "
	many := func(how string, pick func(manyQueues) float64) []entry {
		return []entry{ours(manyHow+how, manyQueuesFigure(pick))}
	}
	return []figure{
		{"scale/backlog_20k", microsOf, "scale", 20_000, 20_000, []entry{
			ours("Redis CPU per claimed and settled task of 20,000 due beside 20,000 scheduled", smallPerClaim),
		}},
		{"scale/backlog_1M", microsOf, "scale", 1_000_000, 20_000, []entry{
			ours("the same of 1,000,000 due beside 1,000,000 scheduled", backlogPerClaim),
		}},
		{"scale/slowest_script_us", "µs/call", "scale", 1_000_000, 20_000, []entry{
			ours("mean of the slowest command over all kinds of calls, on what scale/backlog_1M leaves", slowestScript),
		}},
		{"scale/queues_10k", millis, "scale", 10_000, 500, many("p99 of how late handlers start", func(m manyQueues) float64 { return m.lateP99 })},
		{"scale/queues_10k_rate", perSecond, "scale", 10_000, 500, many("sustained", func(m manyQueues) float64 { return m.rate })},
		{"scale/queues_10k_cores", "cores", "scale", 10_000, 500, many("its processor time", func(m manyQueues) float64 { return m.cores })},
	}
}
