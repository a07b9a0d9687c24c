package redisstore

import (
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
)

// BenchmarkRecord encodes and decodes what most tasks are: a kind and a payload.
func BenchmarkRecord(b *testing.B) {
	sub := task("task-123456789012345")
	sub.Payload = make([]byte, 128)
	body, err := encodeRecord(&sub)
	ok(b, err)
	record := stamped(body)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := encodeRecord(&sub); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var t dispatch.Task
			var named bool
			if err := decodeRecord(record, &t, &named); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkProgress is the same of a task that has failed ten times.
func BenchmarkProgress(b *testing.B) {
	p := dispatch.Progress{Attempts: 10, FirstAttempt: epoch, LastAttempt: epoch.Add(time.Hour)}
	for i := range 10 {
		p.History = append(p.History, dispatch.AttemptRecord{
			Number: i + 1, StartedAt: epoch, Duration: time.Second, Worker: alice, Token: 1, ErrorKind: dispatch.KindHandler,
			Error: "the receiver is not there",
		})
	}
	text, err := encodeProgress(&p)
	ok(b, err)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := encodeProgress(&p); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decodeProgress(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
