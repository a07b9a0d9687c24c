package worker

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// benchmarkHeader is about what a dispatcher sends with a task.
var benchmarkHeader = http.Header{
	"Content-Type": {"application/json"}, "User-Agent": {"dispatch/1"}, "X-Dispatch-Attempt": {"1"},
	"X-Dispatch-Deadline": {"2026-11-29T15:45:00Z"}, "X-Dispatch-Execution-Count": {"0"},
	"X-Dispatch-Fencing-Token": {"1796000000000000"}, "X-Dispatch-Queue": {"mail"},
	"X-Dispatch-Retry-Count": {"0"}, "X-Dispatch-Scheduled-At": {"2026-11-29T15:35:00Z"},
	"X-Dispatch-Task-Id": {"0123456789abcdefghijklmn"},
}

// BenchmarkDeliver sets Deliver beside the least that net/http can do with the same request, one after the other and
// with 64 in flight. The receiver shares the machine, so the ratio is what counts.
func BenchmarkDeliver(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "ok")
	}))
	defer srv.Close()
	body := bytes.Repeat([]byte("x"), 128)

	client := &http.Client{Transport: NewTransport(Egress{AllowPrivate: true})}
	defer client.CloseIdleConnections()
	bare := func(b *testing.B) {
		req, err := http.NewRequestWithContext(b.Context(), "POST", srv.URL, bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		req.Header = benchmarkHeader
		resp, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	d := newTestDeliverer(b, nil)
	deliver := func(b *testing.B) {
		res := d.Deliver(b.Context(), Request{Method: "POST", URL: srv.URL, Header: benchmarkHeader, Body: body})
		if res.Kind != "" {
			b.Fatal(res)
		}
	}
	for _, bench := range []struct {
		name string
		call func(*testing.B)
	}{{"bare", bare}, {"deliver", deliver}} {
		b.Run("single/"+bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bench.call(b)
			}
		})
		b.Run("64/"+bench.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					bench.call(b)
				}
			})
		})
	}
}

// BenchmarkPool counts items that do nothing, added a hundred at a time as claims do, of one lane and of several.
func BenchmarkPool(b *testing.B) {
	for _, bench := range []struct {
		name  string
		lanes []string
		bound int
	}{{"lanes=1", []string{"a"}, 64}, {"lanes=1/bound", []string{"a"}, 48}, {"lanes=3/bound", []string{"a", "b", "c"}, 19}} {
		b.Run(bench.name, func(b *testing.B) {
			const batch = 100
			p := NewPool(64, bench.bound, func(int) {})
			items := make([]int, batch)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				p.Add(bench.lanes[n/batch%len(bench.lanes)], items...)
				if n += batch; p.Waiting() > 10*batch {
					waitIdle(b, p)
				}
			}
			waitIdle(b, p)
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "items/s")
		})
	}
}
