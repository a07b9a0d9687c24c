package worker

import (
	"bufio"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"time"
)

// FuzzAdvice reads the header of a response as RFC 9110 has it, in other words: whatever a receiver sends, nobody is told to
// wait less than no time, nor both for a while and until an instant.
func FuzzAdvice(f *testing.F) {
	const date = "Sun, 01 Mar 2026 12:00:00 GMT"
	for _, seed := range [][3]string{{"", "", ""}, {"120", "", "true"}, {" 5 ", date, " TRUE "}, {"-1", "", "1"}, {"1e9", "", ""}, {"+5", "", ""},
		{"99999999999999999999", "", ""}, {"Sun, 01 Mar 2026 12:00:30 GMT", date, ""}, {"Sun, 01 Mar 2026 11:00:00 GMT", date, ""},
		{"Sunday, 01-Mar-26 12:00:00 GMT", "", ""}, {"Sun Mar  1 12:00:00 2026", "x", ""}, {"Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT", ""},
		{"\u0665", "", ""}, {"20000000000000000000A", "", ""}, {"0x10", "", ""}, {"1_000", "", ""}} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, after, date, noRetry string) {
		h := http.Header{"Retry-After": {after}, "Date": {date}, "X-Dispatch-No-Retry": {noRetry}}
		a := adviceOf(h)
		if a.RetryAfter < 0 || a.RetryAfter > 0 && !a.RetryAt.IsZero() {
			t.Errorf("%q: %+v", h, a)
		}
		text := strings.TrimSpace(after)
		switch digits := text != "" && strings.Trim(text, "0123456789") == ""; {
		case digits:
			n, _ := new(big.Int).SetString(text, 10)
			if most := big.NewInt(maxRetryAfter); n.Cmp(most) > 0 {
				n = most
			}
			if got := int64(a.RetryAfter / time.Second); n.Int64() != got || !a.RetryAt.IsZero() {
				t.Errorf("%q: %+v, want %v s", text, a, n)
			}
		default:
			at, err := http.ParseTime(text)
			from, unknown := http.ParseTime(date)
			want := Advice{NoRetry: a.NoRetry}
			switch {
			case err != nil:
			case unknown != nil:
				want.RetryAt = at
			case at.After(from):
				want.RetryAfter = at.Sub(from)
			}
			if a.RetryAfter != want.RetryAfter || !a.RetryAt.Equal(want.RetryAt) {
				t.Errorf("%q: %+v, want %+v", h, a, want)
			}
		}
		if a.NoRetry != strings.EqualFold(strings.TrimSpace(noRetry), "true") {
			t.Errorf("no retry %q: %v", noRetry, a.NoRetry)
		}
	})
}

// FuzzSign has the reference library verify whatever was signed, as it arrives; what cannot be signed leaves the header as
// it was.
func FuzzSign(f *testing.F) {
	f.Add(signedID, int64(signedUnix), []byte(signedBody), "Webhook-Id")
	f.Add("", int64(0), []byte(nil), "webhook-signature")
	f.Add("a.b", int64(-1), []byte("."), "WEBHOOK-TIMESTAMP")
	f.Add("~", int64(1<<40), []byte("\x00"), "X-Other")
	secrets := mustParse(f, newSecret, oldSecret)
	f.Fuzz(func(t *testing.T, id string, unix int64, body []byte, present string) {
		h := http.Header{present: {"before"}}
		if err := Sign(h, secrets, id, time.Unix(unix, 0), body); err != nil {
			if Classify(0, err) != KindConfig || len(h) != 1 || h[present][0] != "before" {
				t.Errorf("%v, and the header is %q", err, h)
			}
			if id != "" && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "" {
				t.Errorf("the ID of a task %q cannot be signed: %v", id, err)
			}
			return
		}
		for name := range h {
			if http.CanonicalHeaderKey(name) != http.CanonicalHeaderKey(present) {
				continue
			}
			if isWebhookField(present) != (h[name][0] != "before") {
				t.Errorf("the header is %q", h)
			}
		}
		got := arrived(h)
		for _, secret := range []string{newSecret, oldSecret} {
			if err := mustVerifier(t, secret).VerifyIgnoringTimestamp(body, got); err != nil {
				t.Errorf("ID %q, time %d: %v", id, unix, err)
			}
			if err := mustVerifier(t, secret).VerifyIgnoringTimestamp(append([]byte("x"), body...), got); err == nil {
				t.Error("another body is verified")
			}
		}
	})
}

// FuzzRedact checks that nothing quoted, no URL and no header of a receiver is in what may be logged.
func FuzzRedact(f *testing.F) {
	for _, text := range []string{"", "dial tcp: refused", `Post "https://a/?token=x": EOF`, `"`, strings.Repeat("é", 300), "a :(", "net/http: HTTP/1.x transport: \"x"} {
		f.Add(text, "https://a.example/?q="+canary, uint8(3))
	}
	f.Fuzz(func(t *testing.T, text, target string, depth uint8) {
		cause := fmt.Errorf("%s%q", strings.ReplaceAll(text, canary, ""), canary)
		var err error = cause
		for range depth % 4 {
			err = &url.Error{Op: "Post", URL: target, Err: err}
		}
		got := redact(err).Error()
		if strings.Contains(got, canary) || strings.Contains(got, `"`) || len(got) > maxErrorText {
			t.Errorf("%q is told as %q", err, got)
		}
		if again := redact(redact(err)).Error(); again != got {
			t.Errorf("%q is told as %q, then as %q", err, got, again)
		}
		if got := redact(&url.Error{Op: "Post", URL: target, Err: textproto.ProtocolError(text)}).Error(); text != "" && strings.Contains(got, text) && !strings.Contains("worker: malformed response header", text) {
			t.Errorf("the header %q is told as %q", text, got)
		}
		if plain := errors.New("connection refused"); redact(plain) != plain {
			t.Error("a clean error is another one")
		}
	})
}

// FuzzCheckField checks that what passes can be sent, and arrives as the one field it is.
func FuzzCheckField(f *testing.F) {
	for _, seed := range [][2]string{{"X-A", "b"}, {"content-length", "0"}, {"a b", "c"}, {"A", "a\r\nB: c"}, {"hOST", "x"}, {"A", "\x00"},
		{"", ""}, {"trailer", ""}, {"Transfer-encodinG", "chunked"}, {"A", "\x80\xff"}, {"ſ", ""}, {"A", " \tpadded\t "}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		if err := checkField(name, []string{value}); err != nil {
			if Classify(0, err) != KindConfig || strings.Contains(err.Error(), "\n") || len(err.Error()) > 300 {
				t.Errorf("%q: %q: %v", name, value, err)
			}
			return
		}
		req, err := http.NewRequest("POST", "http://example.com/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{name: {value}}
		var wire strings.Builder
		if err := req.Write(&wire); err != nil {
			t.Fatalf("%q: %q passes and cannot be sent: %v", name, value, err)
		}
		got, err := http.ReadRequest(bufio.NewReader(strings.NewReader(wire.String())))
		if err != nil {
			t.Fatalf("%q: %q passes and cannot be read: %v\n%s", name, value, err, wire.String())
		}
		if canonical := http.CanonicalHeaderKey(name); canonical != "User-Agent" && (len(got.Header.Values(name)) != 1 || len(got.Header) > 3 ||
			got.Header.Get(name) != strings.Trim(value, " \t")) {
			t.Errorf("%q: %q arrives as %q", name, value, got.Header)
		}
	})
}

// FuzzTarget checks that what passes as a URL can be requested, the first time and the next, and that what does not is not
// quoted: it may hold a password.
func FuzzTarget(f *testing.F) {
	for _, text := range []string{"http://a.example/", "https://u:p@h:1/?q#f", "http://h:/", "http://[::1%25a]:80/", "http://h:0/", "http://h:65536",
		"ftp://a", "//a", "http:///", "http://a\"b", "http://a b/", "http://%41/", "HTTP://A", "http://a:80:80/", "http://[::1]x/", "http://a/\x7f"} {
		f.Add(text)
	}
	var known targets
	f.Fuzz(func(t *testing.T, text string) {
		u, err := known.parse(text)
		if err != nil {
			if Classify(0, err) != KindConfig || len(text) > 8 && strings.Contains(err.Error(), text) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		next, err := known.parse(text)
		if err != nil || *next != *u || next == u {
			t.Errorf("%q is %v, then %v, %v", text, u, next, err)
		}
		var wire strings.Builder
		req := &http.Request{Method: "POST", URL: u, Host: u.Host, Header: http.Header{}}
		if err := req.Write(&wire); err != nil {
			t.Fatalf("%q passes and cannot be requested: %v", text, err)
		}
		got, err := http.ReadRequest(bufio.NewReader(strings.NewReader(wire.String())))
		if err != nil {
			t.Fatalf("%q passes and cannot be read: %v\n%s", text, err, wire.String())
		}
		if strings.Count(wire.String(), "\n") != 5 || len(got.Header) > 2 {
			t.Errorf("%q arrives as %q", text, wire.String())
		}
	})
}
