package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// travelling is a call that waits for its pipeline, and then for its answer.
type travelling struct {
	ctx     context.Context // the caller's: its end keeps a call from leaving
	script  *script
	text    bool // the server does not know the script
	keys    []string
	args    []any
	command []any // instead of a script
	bytes   int

	answered chan struct{} // closed once reply and err are set
	reply    any
	err      error
}

// key is one of the keys of a call.
func (t *travelling) key() string {
	if t.command != nil {
		return t.command[1].(string)
	}
	return t.keys[0]
}

// travels says whether a call goes with others.
func (t *travelling) travels() bool {
	return t.script != nil && t.script.travels && !t.text && t.bytes <= convoyBytes/4
}

// addTo adds a call to a pipeline.
func (t *travelling) addTo(ctx context.Context, pipe redis.Pipeliner) *redis.Cmd {
	switch {
	case t.command != nil:
		return pipe.Do(ctx, t.command...)
	case t.text:
		return pipe.Eval(ctx, t.script.source, t.keys, t.args...)
	}
	return pipe.EvalSha(ctx, t.script.sha, t.keys, t.args...)
}
