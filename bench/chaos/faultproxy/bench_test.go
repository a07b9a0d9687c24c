package faultproxy

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch/internal/redistest"
)

// What the proxy adds to a command, alone and in a pipeline of a hundred: a rig must not measure its own tools.
func BenchmarkPass(b *testing.B) {
	server := redistest.Start(b)
	p, err := Listen(server.Addr())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Close)
	for name, addr := range map[string]string{"direct": server.Addr(), "proxy": p.Addr()} {
		c := redis.NewClient(&redis.Options{Addr: addr})
		b.Cleanup(func() { c.Close() })
		b.Run(name+"/alone", func(b *testing.B) {
			for b.Loop() {
				if err := c.Set(b.Context(), "k", "v", 0).Err(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/pipeline", func(b *testing.B) {
			for b.Loop() {
				pipe := c.Pipeline()
				for range 100 {
					pipe.Set(b.Context(), "k", "v", 0)
				}
				if _, err := pipe.Exec(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
