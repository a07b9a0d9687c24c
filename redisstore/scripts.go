package redisstore

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// script is one .lua file. Its text is constant; only KEYS and ARGV carry data.
type script struct {
	name, source, sha string
	travels           bool // with others; see convoy
	acknowledged      bool // to the caller of a Client, when replicas have it; see durable.go
}

// scripts are all transitions, one file each.
type scripts struct {
	// What a task goes through.
	enqueue, claim, settle, extend, leases *script
	// What is done to tasks from outside.
	await, cancel, delete, edit, inspect, replay, reschedule, runTask *script
	// Queues, and what is removed from them.
	cleanup, counts, purge, purgeSlice, queueCreate, queueReplace, queueState *script
	// Notes of what queues have to do.
	announce, hints, look, repair, rest *script
	// The fleet.
	planPublish, termBegin, workerBeat, workerRead, workerReap, workerRegister, workerRemove, workerSweep *script
	// Cron entries.
	cronAdvance, cronDelete, cronDue, cronPause, cronPut *script
	// Nothing; see durable.go.
	mark *script
}

// loadScripts reads the embedded files and puts the functions that they share before each. preamble goes before all of
// it: tests put "#!lua" there, which makes Redis refuse keys that are not declared.
func loadScripts(preamble string) scripts {
	read := func(name string) string {
		text, err := luaFiles.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic("redisstore: " + err.Error()) // the file is part of the program
		}
		return string(text)
	}
	shared := preamble + read("lib_clock") + read("lib_record")
	load := func(name string, libraries ...string) *script {
		source := shared
		for _, library := range libraries {
			source += read(library)
		}
		source += read(name)
		sum := sha1.Sum([]byte(source))
		return &script{name: name, source: source, sha: hex.EncodeToString(sum[:])}
	}
	all := scripts{
		enqueue: load("enqueue"), extend: load("extend"), leases: load("leases"),
		claim:  load("claim", "lib_lease", "lib_limits", "lib_memo", "lib_throttle"),
		settle: load("settle", "lib_lease", "lib_throttle"),

		await: load("await"), cancel: load("cancel"), delete: load("delete"), edit: load("edit"), inspect: load("inspect"),
		replay: load("replay"), reschedule: load("reschedule"), runTask: load("run_task"),

		cleanup: load("cleanup"), counts: load("counts", "lib_throttle"), purge: load("purge"),
		purgeSlice: load("purge_slice"), queueCreate: load("queue_create"), queueReplace: load("queue_replace"),
		queueState: load("queue_state"),

		announce: load("announce"), hints: load("hints"), look: load("look"), repair: load("repair"), rest: load("rest"),

		planPublish: load("plan_publish"), termBegin: load("term_begin"), workerBeat: load("worker_beat"),
		workerRead: load("worker_read"), workerReap: load("worker_reap"), workerRegister: load("worker_register"),
		workerRemove: load("worker_remove"), workerSweep: load("worker_sweep"),

		cronAdvance: load("cron_advance", "lib_entry"), cronDelete: load("cron_delete", "lib_entry"),
		cronDue: load("cron_due", "lib_entry"), cronPause: load("cron_pause", "lib_entry"), cronPut: load("cron_put", "lib_entry"),

		mark: &script{name: "mark", source: preamble + read("mark")}, // it goes by its text, and needs no other
	}
	for _, sc := range []*script{all.enqueue, all.claim, all.settle} {
		sc.travels = true
	}
	for _, sc := range []*script{
		all.enqueue, all.cancel, all.delete, all.edit, all.replay, all.reschedule, all.runTask,
		all.purge, all.queueCreate, all.queueReplace, all.queueState, all.cronDelete, all.cronPause, all.cronPut,
	} {
		sc.acknowledged = true
	}
	return all
}

// run runs a script, again and again while the server refuses for the moment; see persist. With ErrNotReplicated there is a
// reply too.
func (s *Store) run(ctx context.Context, mode persistence, sc *script, keys []string, args ...any) (any, error) {
	var reply any
	err := s.persist(ctx, mode, func(ctx context.Context) error {
		var err error
		reply, err = s.evalSha(ctx, sc, keys, args)
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			reply, err = s.eval(ctx, sc, keys, args) // flushed, restarted or failed over
		}
		return err
	})
	if err != nil {
		return reply, fmt.Errorf("redisstore: %s: %w", sc.name, err)
	}
	return reply, nil
}

// reply reads the array that a script returned. A script that answers in another way is broken, and the first reader
// says so.
type reply struct {
	script string
	items  []any
	err    error
}

func replyOf(sc *script, v any) *reply {
	items, ok := v.([]any)
	r := &reply{script: sc.name, items: items}
	if !ok {
		r.fail("array", v)
	}
	return r
}

func (r *reply) fail(want string, got any) {
	if r.err == nil {
		r.err = fmt.Errorf("redisstore: %s answered %T where it should answer %s", r.script, got, want)
	}
}

// keep keeps an error, if it is the first.
func (r *reply) keep(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reply) left() int { return len(r.items) }

func (r *reply) next() any {
	if len(r.items) == 0 {
		r.fail("more", nil)
		return nil
	}
	v := r.items[0]
	r.items = r.items[1:]
	return v
}

func (r *reply) int() int64 {
	v := r.next()
	n, ok := v.(int64)
	if !ok && r.err == nil {
		r.fail("an integer", v)
	}
	return n
}

// count is how many of n items a script got to: at least one.
func (r *reply) count(n int) int {
	read := r.int()
	if read < 1 || read > int64(n) {
		r.fail("how many of its items it read", read)
		return 0
	}
	return int(read)
}

func (r *reply) string() string {
	v := r.next()
	text, ok := v.(string)
	if !ok && r.err == nil {
		r.fail("a string", v)
	}
	return text
}

// array is an array within the answer.
func (r *reply) array() *reply {
	v := r.next()
	items, ok := v.([]any)
	if !ok {
		r.fail("an array", v)
	}
	return &reply{script: r.script, items: items}
}

// digits turns one digit per item into whether it is '1'.
func digits(codes string, n int) ([]bool, error) {
	if len(codes) != n || strings.Trim(codes, "01") != "" {
		return nil, fmt.Errorf("redisstore: %d codes for %d items", len(codes), n)
	}
	out := make([]bool, n)
	for i := range out {
		out[i] = codes[i] == '1'
	}
	return out, nil
}
