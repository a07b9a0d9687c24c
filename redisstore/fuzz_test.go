package redisstore

import (
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// bombs are msgpack of a few bytes that makes a trusting decoder allocate gigabytes, or run out of stack.
var bombs = []string{
	"\xdd\xff\xff\xff\xff",             // an array of 2^32 - 1
	"\xdf\xff\xff\xff\xff",             // a map of as many
	"\xc6\xff\xff\xff\xff",             // bytes
	"\xdb\x7f\xff\xff\xff",             // a text
	"\xc9\xff\xff\xff\xff\x00",         // an extension
	"\xdc\xff\xff", "\xde\xff\xff\x01", // 65,535
	strings.Repeat("\x91", 1<<20) + "\x01",     // nested lists
	strings.Repeat("\x81\x01", 1<<20) + "\x01", // nested maps
	strings.Repeat("\xdd\x00\x00\x00\x01", 1<<10) + "\xdd\xff\xff\xff\xff",
	"\x81\xdd\xff\xff\xff\xff\x01",
	"\x81\x03\xdd\xff\xff\xff\xff",
	"\x81\x05\xc6\xff\xff\xff\xff",
	"\x81\x04\xdf\xff\xff\xff\xff",
	"\x81\x04\x81\xa1x\xdd\xff\xff\xff\xff",
	"\x81\x07\xdf\x7f\xff\xff\xff\xa1x",
	"\x81\x06\xdd\xff\xff\xff\xff",
}

// allocated is how much f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// decoders are all that read what a server holds.
var decoders = map[string]func(body string) error{
	"record": func(body string) error {
		var task dispatch.Task
		var named bool
		return decodeRecord("\x01"+strings.Repeat("\x00", headerBytes-1)+body, &task, &named)
	},
	"progress": func(body string) error {
		_, err := decodeProgress("\x01\x00\x00\x00\x01" + body)
		return err
	},
	"worker": func(body string) error { return decodeWorker("\x01"+body, new(cluster.Worker)) },
	"plan": func(body string) error {
		_, err := decodePlan("\x011 1 " + body)
		return err
	},
	"settings": func(body string) error {
		_, err := decodeSettings("\x01" + body)
		return err
	},
}

// Not parallel: it measures what the whole process allocates.
func TestBombs(t *testing.T) {
	for name, decode := range decoders {
		for _, bomb := range bombs {
			var err error
			if got := allocated(func() { err = decode(bomb) }); got > 1<<20+4*uint64(len(bomb)) {
				t.Errorf("%s of %d bytes, %.20q: %d bytes allocated", name, len(bomb), bomb, got)
			}
			if !errors.Is(err, errMalformed) {
				t.Errorf("%s of %d bytes, %.20q: got %v", name, len(bomb), bomb, err)
			}
		}
	}
	// Well-formed, and a hundred bytes of memory for each byte of it.
	attempts := "\x81\x03\xdd\x00\x0f\x00\x00" + strings.Repeat("\x80", 0xf0000)
	var err error
	if got := allocated(func() { err = decoders["progress"](attempts) }); got > 8*uint64(len(attempts)) {
		t.Errorf("%d bytes allocated for %d", got, len(attempts))
	}
	if !errors.Is(err, errMalformed) {
		t.Errorf("got %v", err)
	}
}

func FuzzScan(f *testing.F) {
	seedBodies(f, func(body string) { f.Add([]byte(body)) })
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := scan(string(b)); err == nil {
			// What scan accepts, the decoder skips to its exact end.
			if err := readMap("\x81\x01"+string(b), func(r *reader, _ uint64) { r.skip() }); err != nil && len(b) > 0 && depth(b) < maxDepth {
				t.Errorf("%x: accepted and not readable: %v", b, err)
			}
		} else if !errors.Is(err, errMalformed) {
			t.Errorf("%x: %v", b, err)
		}
	})
}

// depth bounds the nesting of a value from above.
func depth(b []byte) int {
	n := 0
	for _, c := range b {
		if c >= 0x80 && c <= 0x9f || c >= 0xdc && c <= 0xdf {
			n++
		}
	}
	return n
}

// seedBodies adds bombs, and good values without their headers.
func seedBodies(f *testing.F, add func(body string)) {
	for _, bomb := range bombs {
		add(bomb[:min(len(bomb), 1<<12)])
	}
	for golden, header := range map[string]int{goldenRecord: headerBytes, goldenProgress: progressHeader, goldenSettings: 1} {
		add(unhex(f, golden)[header:])
	}
	add("\x80")
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add(unhex(f, goldenRecord))
	seedBodies(f, func(body string) { f.Add("\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01\x00\x00\x03\xe8" + body) })
	f.Fuzz(func(t *testing.T, record string) {
		var first dispatch.Submission
		if decodeRecord(record, &first.Task, &first.Named) != nil {
			return
		}
		recordCreated(record)
		// What was read is written and read again as it is, but for what is as good as nothing.
		body, err := encodeRecord(&first)
		ok(t, err)
		var second dispatch.Submission
		ok(t, decodeRecord(stamped(body), &second.Task, &second.Named))
		for _, s := range []*dispatch.Submission{&first, &second} {
			if len(s.Header) == 0 {
				s.Header = nil
			}
			if len(s.Payload) == 0 {
				s.Payload = nil
			}
			if len(s.Metadata) == 0 {
				s.Metadata = nil
			}
		}
		if !reflect.DeepEqual(first, second) {
			t.Errorf("got %+v, then %+v", first, second)
		}
	})
}

func FuzzDecodeProgress(f *testing.F) {
	f.Add(unhex(f, goldenProgress))
	f.Add("\x01\x00\x00\x00\x01\x81\x03\x91\x81\x03\xcf\x30\x30\x30\x30\x30\x30\x30\x30") // an attempt of more ms than a Duration holds
	seedBodies(f, func(body string) { f.Add("\x01\x00\x00\x00\x01" + body) })
	f.Fuzz(func(t *testing.T, text string) {
		p, err := decodeProgress(text)
		if err != nil {
			return
		}
		if len(p.History) > len(text) {
			t.Errorf("%d attempts in %d bytes", len(p.History), len(text))
		}
		// What was read has one form, which keeps all of it.
		once, err := encodeProgress(&p)
		ok(t, err)
		q, err := decodeProgress(once)
		ok(t, err)
		if twice, err := encodeProgress(&q); err != nil || twice != once {
			t.Errorf("%q is written %q, then %q, %v", text, once, twice, err)
		}
		if len(p.Result) == 0 {
			p.Result = nil
		}
		for i := range p.History {
			if d := &p.History[i].Duration; *d < 0 {
				*d = 0 // no attempt takes less than no time
			}
		}
		if !reflect.DeepEqual(p, q) {
			t.Errorf("%q is read as %+v, then as %+v", text, p, q)
		}
	})
}

func FuzzDecodeSettings(f *testing.F) {
	f.Add(unhex(f, goldenSettings))
	f.Add("\x01\x81\x09\xcf\x30\x30\x30\x30\x30\x30\x30\x30") // more ms than a Duration holds
	seedBodies(f, func(body string) { f.Add("\x01" + body) })
	f.Fuzz(func(t *testing.T, text string) {
		q, err := decodeSettings(text)
		if err != nil {
			return
		}
		if interval, burst, concurrent := limitArgs(q); interval < 0 || concurrent < 0 || q.Burst >= 0 && burst < 0 {
			t.Errorf("%+v: limits %d, %d, %d", q, interval, burst, concurrent)
		}
		once, err := encodeSettings(q)
		ok(t, err)
		again, err := decodeSettings(once)
		ok(t, err)
		if twice, err := encodeSettings(again); err != nil || twice != once {
			t.Errorf("%q is written %q, then %q, %v", text, once, twice, err)
		}
		if q.Rate == q.Rate && !reflect.DeepEqual(q, again) { // no rate that is not a number equals itself
			t.Errorf("%q is read as %+v, then as %+v", text, q, again)
		}
	})
}

func FuzzParseHints(f *testing.F) {
	for _, message := range []string{"", "0 mail", "1500 a 0! b", "-1 a", "1 a 2", "99999999999999999999 a", "1099511627775 a", "! a",
		"0c a", "5c12x3 a", "0x99999999999999999999 a", "1x a", "0!*c-1 a", "0*! a", "\xff \xff"} {
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message string) {
		hints := parseHints(message)
		for _, h := range hints {
			if h.Wait < 0 || h.Queue == "" || strings.ContainsAny(h.Queue, " \n\t") {
				t.Errorf("%q: %+v", message, h)
			}
		}
		if again := parseHints(formatHints(hints)); len(hints) > 0 && !reflect.DeepEqual(again, hints) {
			t.Errorf("%q: %+v, then %+v", message, hints, again)
		}
	})
}

func FuzzParseEnded(f *testing.F) {
	for _, message := range []string{"", "mail", "mail a", "mail a b", " mail  a ", "mail\na", "\xff \xff", "\u2003mail\u2003a", "mail " + strings.Repeat("a ", 1000)} {
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message string) {
		queue, ids := parseEnded(message)
		if queue == "" && len(ids) > 0 || len(ids) > len(message)/2 {
			t.Errorf("%q: %q, %d IDs", message, queue, len(ids))
		}
		again := queue
		for _, id := range ids {
			if id == "" || strings.ContainsAny(string(id), " \n\t") {
				t.Errorf("%q: ID %q", message, id)
			}
			again += " " + string(id)
		}
		if q, more := parseEnded(again); q != queue || !slices.Equal(more, ids) {
			t.Errorf("%q: %q %q, then %q %q", message, queue, ids, q, more)
		}
	})
}

func FuzzParseLease(f *testing.F) {
	for _, lease := range []string{"1772366400123000 w-alice 1 1", "", " ", "1 w", "-5 w 1 1", "1  1"} {
		f.Add(lease)
	}
	f.Fuzz(func(t *testing.T, lease string) {
		_, w, err := parseLease(lease)
		if err == nil && (w == "" || strings.Contains(string(w), " ")) {
			t.Errorf("%q is held by %q", lease, w)
		}
	})
}

func FuzzSplitHosts(f *testing.F) {
	for _, u := range []string{
		"redis://localhost", "rediss://u:p@h1:1,h2,[::1]:3/0?a=b", "redis://", "redis://,", "http://h", "redis://a@b@c", "redis://h/%zz",
		"redis://h1,h2?master_name=m", "redis://:sec%20ret@h:6379", "redis://[::1", "redis://h:6379#f",
	} {
		f.Add(u)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		normal, _, err := splitHosts(raw)
		var field *dispatch.FieldError
		switch {
		case err == nil && !strings.HasPrefix(normal, "redis"):
			t.Errorf("%q became %q", raw, normal)
		case err != nil && !errors.As(err, &field):
			t.Errorf("%q: %v", raw, err)
		}
	})
}

// What is not ours may be long, and goes into logs.
func TestErrorsOfJunkAreShort(t *testing.T) {
	t.Parallel()
	junk := strings.Repeat("\xff", 1<<20)
	_, _, lease := parseLease(junk)
	_, entry := decodeEntry(junk, junk)
	for name, err := range map[string]error{"lease": lease, "entry": entry} {
		if err == nil || len(err.Error()) > 1000 {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}
