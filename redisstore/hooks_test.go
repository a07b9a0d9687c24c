package redisstore

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"
)

// hook sees every command of a client. script is the name of the script that it runs, or empty.
type hook func(ctx context.Context, script string, cmd redis.Cmder, next redis.ProcessHook) error

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return h(ctx, scriptName(cmd), cmd, next) }
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return scriptName(cmd) != "" }) {
			return next(ctx, cmds)
		}
		var first error
		for _, cmd := range cmds { // one by one
			err := h(ctx, scriptName(cmd), cmd, func(ctx context.Context, cmd redis.Cmder) error {
				return next(ctx, []redis.Cmder{cmd})
			})
			cmd.SetErr(err)
			first = cmp.Or(first, err)
		}
		return first
	}
}

// allScripts are the scripts in the order of their names.
func allScripts() []*script { return listed(loadScripts("")) }

func listed(s scripts) []*script {
	return []*script{s.enqueue, s.claim, s.settle, s.extend, s.leases,
		s.await, s.cancel, s.delete, s.edit, s.inspect, s.replay, s.reschedule, s.runTask,
		s.cleanup, s.counts, s.purge, s.purgeSlice, s.queueCreate, s.queueReplace, s.queueState,
		s.announce, s.hints, s.look, s.repair, s.rest,
		s.planPublish, s.termBegin, s.workerBeat, s.workerRead, s.workerReap, s.workerRegister, s.workerRemove, s.workerSweep,
		s.cronAdvance, s.cronDelete, s.cronDue, s.cronPause, s.cronPut, s.mark}
}

// scriptNames finds the name of a script by its hash or its text.
var scriptNames = sync.OnceValue(func() map[string]string {
	names := make(map[string]string)
	for _, preamble := range []string{"", strictPreamble} {
		for _, s := range listed(loadScripts(preamble)) {
			names[s.sha], names[s.source] = s.name, s.name
		}
	}
	return names
})

func scriptName(cmd redis.Cmder) string {
	if name := cmd.Name(); name != "evalsha" && name != "eval" {
		return ""
	}
	text, _ := cmd.Args()[1].(string)
	return scriptNames()[text]
}

// scriptKeys are the KEYS of a script call.
func scriptKeys(cmd redis.Cmder) []string {
	n, _ := cmd.Args()[2].(int)
	var keys []string
	for _, k := range cmd.Args()[3 : 3+n] {
		keys = append(keys, k.(string))
	}
	return keys
}

// scriptArg is an ARGV of a script call, counted from 1.
func scriptArg(cmd redis.Cmder, i int) string {
	n, _ := cmd.Args()[2].(int)
	switch v := cmd.Args()[2+n+i].(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

// twice makes every script run twice for one call, as a client does whose connection broke too late. It answers with
// what the first run said, because some answers say what has changed, but never keeps leases from their worker.
func twice() hook {
	return func(ctx context.Context, script string, cmd redis.Cmder, next redis.ProcessHook) error {
		err := next(ctx, cmd)
		switch {
		case script == "" || err != nil:
		case script == "cleanup": // it removes as much again
		case script == "announce" && scriptArg(cmd, 2) != "": // everybody hears it again
		default:
			again := redis.NewCmd(ctx, cmd.Args()...)
			if err := next(ctx, again); err != nil {
				return err
			}
			// A term that was begun twice is the last one: who repeats a call goes by the last answer.
			if script == "term_begin" || script == "claim" && leasedBy(again) > leasedBy(cmd.(*redis.Cmd)) {
				cmd.(*redis.Cmd).SetVal(again.Val())
			}
		}
		return err
	}
}

// leasedBy is how many tasks a claim has leased.
func leasedBy(claim *redis.Cmd) int {
	items, _ := claim.Val().([]any)
	if len(items) == 1 { // refused
		return 0
	}
	return len(items[len(items)-2].([]any))
}

// faults makes commands fail, by the name of the command or the script, one fault after the other.
type faults struct {
	mu    sync.Mutex
	plans map[string][]fault
	seen  map[string]int // commands that reached the hook
}

// fault is what happens to one command.
type fault struct {
	err   error
	after bool // the command runs, and its answer is lost
	do    func()
}

var lostReply = fault{err: io.EOF, after: true}

func newFaults() *faults { return &faults{plans: make(map[string][]fault), seen: make(map[string]int)} }

// plan says what happens to the next commands of a name.
func (f *faults) plan(name string, plan ...fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plans[name] = append(f.plans[name], plan...)
}

// again puts a fault back that has not happened.
func (f *faults) again(name string, first fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plans[name] = append([]fault{first}, f.plans[name]...)
}

// sent is how many commands of a name came by.
func (f *faults) sent(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[name]
}

func (f *faults) next(name string) fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[name]++
	if len(f.plans[name]) == 0 {
		return fault{}
	}
	first := f.plans[name][0]
	f.plans[name] = f.plans[name][1:]
	return first
}

func (f *faults) hook() hook {
	return func(ctx context.Context, script string, cmd redis.Cmder, next redis.ProcessHook) error {
		name := script
		if name == "" {
			name = cmd.Name()
		}
		fault := f.next(name)
		if fault.do != nil {
			fault.do()
			fault.do = nil
		}
		if fault.err != nil && !fault.after {
			cmd.SetErr(fault.err)
			return fault.err
		}
		err := next(ctx, cmd)
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			f.again(name, fault) // it did not run yet; its text follows
			return err
		}
		if fault.err != nil {
			cmd.SetErr(fault.err)
			return fault.err
		}
		return err
	}
}
