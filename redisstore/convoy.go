package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
)

const (
	// convoyAfter is how many script calls to one server are on their way, each on a connection of its own, before those
	// that come meanwhile travel together. A process that works on one queue has no more than that.
	convoyAfter = 3
	// convoyBytes is the longest pipeline, and a call of more than a quarter of that travels alone: it costs more than its way.
	// A server, and one that only pretends to be Redis, takes as much in at once, before it writes the first answer; who has
	// no more to send is ready to read that.
	convoyBytes = 4000
	// convoyPatience is how long a call waits for company. By then those on their way are lost, or the server hangs.
	convoyPatience = 50 * time.Millisecond
)

// convoy is what travels to one server. Where thousands of queues have a task now and then, each call is small, and the
// way there costs both sides more than the script. So a call that finds a free connection leaves at once, and the others
// gather: when a connection is free again, they go as one pipeline.
//
// A pipeline that is slow to connect may run a call whose caller has given up meanwhile. So only those travel that know by a
// number or a lease that they come late: claims, settles and enqueues.
type convoy struct {
	client   *redis.Client
	patience time.Duration

	// What ends each pipeline, if its calls are acknowledged when replicas have what they write; see durable.go. Then no
	// call leaves without, however few are on their way, and places are for those that do not travel.
	durability dispatch.Durability
	mark       *script
	places     chan struct{}

	mu      sync.Mutex
	sent    int           // calls and pipelines on their way, but for long calls; at most convoyAfter
	waiting []*travelling // only while sent is convoyAfter, or is about to be
}

// convoyOf finds the convoy to the server that has a key; nil where scripts travel alone.
func (s *Store) convoyOf(ctx context.Context, key string) *convoy {
	server, err := s.serverOf(ctx, key)
	if server == nil || err != nil {
		return nil // the client itself says what is wrong
	}
	return s.convoyTo(server)
}

func (s *Store) convoyTo(server *redis.Client) *convoy {
	if c, ok := s.convoys.Load(server); ok {
		return c.(*convoy)
	}
	made := &convoy{client: server, patience: s.company}
	if s.isDurable() {
		made.durability, made.mark = s.durability, s.scripts.mark
		made.places = make(chan struct{}, durableAlone)
	}
	c, _ := s.convoys.LoadOrStore(server, made)
	return c.(*convoy)
}

// eval runs a script by its text, which the server keeps.
func (s *Store) eval(ctx context.Context, sc *script, keys []string, args []any) (any, error) {
	if sc.acknowledged && s.isDurable() {
		return s.evalDurably(ctx, &travelling{script: sc, text: true, keys: keys, args: args})
	}
	return s.client.Eval(ctx, sc.source, keys, args...).Result()
}

// evalSha runs a script that the server knows by its hash.
func (s *Store) evalSha(ctx context.Context, sc *script, keys []string, args []any) (any, error) {
	var c *convoy
	bytes := callBytes(keys, args)
	if sc.acknowledged && s.isDurable() {
		return s.evalDurably(ctx, &travelling{script: sc, keys: keys, args: args, bytes: bytes})
	}
	if sc.travels && bytes <= convoyBytes/4 {
		c = s.convoyOf(ctx, keys[0])
	}
	if c == nil {
		return s.client.EvalSha(ctx, sc.sha, keys, args...).Result()
	}
	if c.enter() {
		defer c.leave()
		return s.client.EvalSha(ctx, sc.sha, keys, args...).Result()
	}
	t := &travelling{ctx: ctx, script: sc, keys: keys, args: owned(args), bytes: bytes, answered: make(chan struct{})}
	reply, err := c.wait(ctx, t)
	if errors.Is(err, errNoCompany) || hasPrefix(err, redirections) {
		return s.client.EvalSha(ctx, sc.sha, keys, args...).Result() // which knows the way
	}
	return reply, err
}

// errNoCompany says that a call was not sent and is to leave alone.
var errNoCompany = errors.New("redisstore: those on their way do not come back")

// callBytes is about how long a call is on its way, or more.
func callBytes(keys []string, args []any) int {
	const each, number = 10, 20 // what goes with a value, and the longest number
	n := 80 + each*len(args)
	for _, key := range keys {
		n += each + len(key)
	}
	for _, arg := range args {
		switch text := arg.(type) {
		case string:
			n += len(text)
		case *string:
			n += len(*text)
		default:
			n += number
		}
	}
	return n
}

// redirections are how a node of a cluster says that a slot is elsewhere, or about to be.
var redirections = []string{"ASK", "MOVED"}

// owned has values where args has pointers into the caller's memory: a call that waits for others may outlive its caller's
// interest in it.
func owned(args []any) []any {
	out := slices.Clone(args)
	for i, arg := range args {
		if text, ok := arg.(*string); ok {
			out[i] = *text
		}
	}
	return out
}

// enter has a call leave alone, and says so, if few are on their way.
func (c *convoy) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sent < convoyAfter {
		c.sent++
		return true
	}
	return false
}

// wait has a call gather with others until it is answered, or ctx ends. If those on their way do not come back soon, because
// their connections are dead, it is errNoCompany, unless its pipeline ends with more than itself.
func (c *convoy) wait(ctx context.Context, t *travelling) (any, error) {
	c.mu.Lock()
	c.waiting = append(c.waiting, t)
	free := c.sent < convoyAfter // they have all come back meanwhile
	if free {
		c.sent++
	}
	c.mu.Unlock()
	if free {
		c.leave()
	}
	company, cancel := ctx, context.CancelFunc(func() {})
	if c.durability.Replicas == 0 {
		company, cancel = context.WithTimeout(ctx, c.patience)
	}
	defer cancel()
	for {
		select {
		case <-t.answered:
			return t.reply, t.err
		case <-company.Done():
			withdrawn := c.withdraw(t)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if withdrawn {
				return nil, errNoCompany
			}
			company = ctx // it is on its way
		}
	}
}

// withdraw takes a call back that has not left.
func (c *convoy) withdraw(t *travelling) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.waiting, t)
	if i < 0 {
		return false
	}
	c.waiting = slices.Delete(c.waiting, i, i+1)
	return true
}

// leave ends a call that has left alone. Its connection goes to those that wait, on a goroutine that ends when none do.
func (c *convoy) leave() {
	batch := c.take()
	if batch == nil {
		return
	}
	go func() {
		returned := false
		defer func() {
			if !returned {
				c.leave() // a hook of the client has ended the goroutine: the connection goes to a new one
			}
		}()
		for ; batch != nil; batch = c.take() {
			ctx, cancel := context.WithTimeout(context.Background(), patience+c.durability.Timeout)
			c.send(ctx, batch)
			cancel()
		}
		returned = true
	}()
}

// take hands out what waits, as far as it fits, or gives the connection up.
func (c *convoy) take() []*travelling {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for bytes := 0; n < len(c.waiting) && bytes+c.waiting[n].bytes <= convoyBytes; n++ {
		bytes += c.waiting[n].bytes
	}
	if n == 0 {
		c.sent--
		return nil
	}
	batch := c.waiting[:n:n]
	if c.waiting = c.waiting[n:]; len(c.waiting) == 0 {
		c.waiting = nil
	}
	return batch
}

var errPipelineLost = errors.New("redisstore: a hook of the Redis client has ended the pipeline")

// send runs calls in one pipeline. What their callers want of it they have said by their contexts; the pipeline has its
// own time.
func (c *convoy) send(ctx context.Context, batch []*travelling) {
	var replicas *confirmation
	cmds := make([]*redis.Cmd, len(batch))
	done := false
	defer func() {
		recover() // a hook that panics must not end a process in which nobody could stop it: who waits is told
		for i, t := range batch {
			switch {
			case t.err != nil: // its caller has gone
			case !done:
				t.err = errPipelineLost
			default:
				if t.reply, t.err = cmds[i].Result(); t.err == nil {
					t.err = replicas.err()
				}
			}
			close(t.answered)
		}
	}()
	pipe := c.client.Pipeline()
	for i, t := range batch {
		if t.err = t.ctx.Err(); t.err == nil {
			cmds[i] = t.addTo(ctx, pipe)
		}
	}
	if pipe.Len() > 0 {
		replicas = c.confirm(ctx, pipe, batch[0].key())
	}
	pipe.Exec(ctx) // every command has its own error
	done = true
}
