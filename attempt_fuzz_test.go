package dispatch

import (
	"bufio"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
)

// FuzzHeaderOfAttempt checks that whatever headers and metadata a task was stored with, the request can be sent, the receiver
// sees each of Dispatch's own headers once and with Dispatch's value, and nothing that platforms take for their own word.
func FuzzHeaderOfAttempt(f *testing.F) {
	f.Add("X-A", "b", traceparent, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", []byte("{}"), int64(0), 503)
	f.Add("content_type", "text/plain", HeaderDeadLetterReason, "non_2xx", []byte("x"), int64(1<<40), 0)
	f.Add("x-appengine-queuename", "forged", HeaderDeadLetterTask, "a\r\nX-B: c", []byte(nil), int64(-1), -1)
	f.Add("X_Dispatch_Task_Id", "forged", "X_Dispatch-Attempt", "forged", []byte(nil), int64(7), 99999)
	f.Add("USER-agent", "forged", "x", "y", []byte("\xff"), int64(5), 200)
	f.Fuzz(func(t *testing.T, name, value, key, meta string, payload []byte, token int64, status int) {
		task, err := Task{ID: "t-1", Queue: "q", URL: "http://a.example/", Header: http.Header{name: {value}}, Payload: payload}.normalize(start)
		if err != nil {
			return
		}
		task.Metadata = map[string]string{key: meta} // also those that only Dispatch sets: a letter has them
		leased := &Leased{Task: task, At: start, Due: start, Lease: Lease{Token: token},
			Progress: Progress{Attempts: 2, History: []AttemptRecord{{Number: 2, Status: status, ErrorKind: KindNon2xx}}}}
		r := &running{leased: leased, claimedAt: start}
		r.attempt.begin(clockwork.NewFakeClock(), r, start.Add(time.Minute))
		r.ctx = &r.attempt
		h := r.header()
		for _, own := range []string{HeaderTaskID, HeaderQueue, HeaderAttempt, HeaderRetryCount, HeaderExecutionCount, HeaderScheduledAt,
			HeaderDeadline, HeaderFencingToken, "User-Agent"} {
			n := 0
			for name := range h {
				if http.CanonicalHeaderKey(dashed(name)) == own {
					n++
				}
			}
			if n != 1 || len(h[own]) != 1 || h[own][0] == value && value == "forged" {
				t.Errorf("%q: %q makes %s %q, under %d names", name, value, own, h[own], n)
			}
		}
		for name := range h {
			if canonical := http.CanonicalHeaderKey(dashed(name)); strings.HasPrefix(canonical, "X-Appengine-") || strings.HasPrefix(canonical, "X-Cloudtasks-") {
				t.Errorf("%q is sent", name)
			}
		}
		req := &http.Request{Method: task.Method, Host: "a.example", Header: h, Proto: "HTTP/1.1"}
		if req.URL, err = url.Parse(task.URL); err != nil {
			t.Fatal(err)
		}
		var wire strings.Builder
		if err := req.Write(&wire); err != nil {
			t.Fatalf("%q cannot be sent: %v", h, err)
		}
		got, err := http.ReadRequest(bufio.NewReader(strings.NewReader(wire.String())))
		if err != nil || got.Header.Get(HeaderTaskID) != "t-1" || got.Header.Get("X-B") != "" && name != "X-B" {
			t.Errorf("%q arrives as %q, %v", h, wire.String(), err)
		}
	})
}

// FuzzHeaderTime compares with the format that it stands for.
func FuzzHeaderTime(f *testing.F) {
	for _, ms := range []int64{0, 1, 999, 1772366400123, -1, -62135596800000, 253402300799999, 253402300800000, -30610224000000, -30610224000001} {
		f.Add(ms, int64(999_999), 3600)
	}
	f.Fuzz(func(t *testing.T, ms, nanos int64, offset int) {
		at := time.UnixMilli(ms % (1 << 50)).Add(time.Duration(nanos % 1e9)).In(time.FixedZone("", offset%86400))
		if got, want := formatHeaderTime(at), at.UTC().Format(headerTime); got != want {
			t.Errorf("%v is told as %s, want %s", at, got, want)
		}
	})
}

// FuzzConceal checks that a token that went out does not come back: not whole, and not the beginning of it where a text was cut.
func FuzzConceal(f *testing.F) {
	f.Add("secret-token-1", "401: ", " is not known", uint8(200))
	f.Add("secret-token-1", "", "secret-token-1secret-token-1", uint8(9))
	f.Add("aaaaaaaa", "aaaa", "aaa", uint8(11))
	f.Add("abcabcabc", "abc", "abcab", uint8(255))
	f.Fuzz(func(t *testing.T, token, before, after string, cut uint8) {
		if len(token) <= shortestHint || strings.ContainsAny(token, "[] \n") {
			return // one that is short is found by chance, and one with brackets within what stands for it
		}
		text := before + token + after
		text = text[:min(len(text), int(cut))] // as a snippet of what was received is
		r := &running{token: token}
		got := r.conceal(text)
		if strings.Contains(got, token) {
			t.Errorf("%q is told as %q", text, got)
		}
		for n := len(token) - 1; n >= shortestHint; n-- {
			if strings.HasSuffix(got, token[:n]) {
				t.Errorf("%q is told as %q, which ends with %q", text, got, token[:n])
			}
		}
		if !strings.Contains(text, token[:shortestHint]) && got != text {
			t.Errorf("%q has nothing of it and is told as %q", text, got)
		}
	})
}
