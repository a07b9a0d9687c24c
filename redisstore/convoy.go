package redisstore

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

const (
	// convoyAfter is how many script calls to one server are on their way, each on a connection of its own, before those
	// that come meanwhile travel together. A process that works on one queue has no more than that.
	convoyAfter = 3
	// convoyBytes is the longest pipeline, and a call of more than a quarter of that travels alone: it costs more than its way.
	// A server, and one that only pretends to be Redis, takes as much in at once, before it writes the first answer; who has
	// no more to send is ready to read that.
	convoyBytes = 4000
)

// convoy is what travels to one server. Where thousands of queues have a task now and then, each call is small, and the
// way there costs both sides more than the script. So a call that finds a free connection leaves at once, and the others
// gather: when a connection is free again, they go as one pipeline. There is no timer.
type convoy struct {
	client *redis.Client

	mu      sync.Mutex
	sent    int           // calls and pipelines on their way; at most convoyAfter
	waiting []*travelling // only while sent is convoyAfter
}

// travelling is a call that waits for its pipeline, and then for its answer.
type travelling struct {
	ctx   context.Context // the caller's: its end keeps a call from leaving
	sha   string
	keys  []string
	args  []any
	bytes int

	answered chan struct{} // closed once reply and err are set
	reply    any
	err      error
}

// convoyOf finds the convoy to the server that has a key; nil where scripts travel alone.
func (s *Store) convoyOf(ctx context.Context, key string) *convoy {
	var server *redis.Client
	switch client := s.client.(type) {
	case *redis.Client:
		server = client
	case *redis.ClusterClient:
		var err error
		if server, err = client.MasterForKey(ctx, key); err != nil {
			return nil // the client itself says what is wrong
		}
	default:
		return nil
	}
	if c, ok := s.convoys.Load(server); ok {
		return c.(*convoy)
	}
	c, _ := s.convoys.LoadOrStore(server, &convoy{client: server})
	return c.(*convoy)
}

// evalSha runs a script that the server knows by its hash.
func (s *Store) evalSha(ctx context.Context, sha string, keys []string, args []any) (any, error) {
	var c *convoy
	t := &travelling{ctx: ctx, sha: sha, keys: keys, args: args, bytes: callBytes(keys, args)}
	if t.bytes <= convoyBytes/4 {
		c = s.convoyOf(ctx, keys[0])
	}
	if c == nil {
		return s.client.EvalSha(ctx, sha, keys, args...).Result()
	}
	if c.enter(t) {
		defer c.leave()
		return s.client.EvalSha(ctx, sha, keys, args...).Result()
	}
	select {
	case <-t.answered:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if hasPrefix(t.err, redirections) {
		return s.client.EvalSha(ctx, sha, keys, args...).Result() // which knows the way
	}
	return t.reply, t.err
}

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

// enter has a call leave alone, and says so; or wait for the others.
func (c *convoy) enter(t *travelling) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sent < convoyAfter {
		c.sent++
		return true
	}
	t.answered = make(chan struct{})
	c.waiting = append(c.waiting, t)
	return false
}

// leave ends a call that has left alone. Its connection goes to those that wait, on a goroutine that ends when none do.
func (c *convoy) leave() {
	if batch := c.take(); batch != nil {
		go func() {
			for ; batch != nil; batch = c.take() {
				c.send(batch)
			}
		}()
	}
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

// send runs calls in one pipeline. What their callers want of it they have said by their contexts; the pipeline has its
// own time.
func (c *convoy) send(batch []*travelling) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	pipe := c.client.Pipeline()
	cmds := make([]*redis.Cmd, len(batch))
	for i, t := range batch {
		if t.err = t.ctx.Err(); t.err == nil {
			cmds[i] = pipe.EvalSha(ctx, t.sha, t.keys, t.args...)
		}
	}
	pipe.Exec(ctx) // every command has its own error
	for i, t := range batch {
		if cmds[i] != nil {
			t.reply, t.err = cmds[i].Result()
		}
		close(t.answered)
	}
}
