package redisstore

import (
	"encoding/hex"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
)

// stamped puts the script's part before an encoded record: version, generation 7, created at epoch.
func stamped(body string) string {
	const created = "\x01\x00\x00\x00\x07"
	ms := uint64(epoch.UnixMilli())
	var b [6]byte
	for i := range b {
		b[i] = byte(ms >> (40 - 8*i))
	}
	return created + string(b[:]) + body
}

func unhex(t testing.TB, text string) string {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// fullTask has every field that a record keeps.
func fullTask() dispatch.Submission {
	return dispatch.Submission{
		Task: dispatch.Task{
			Kind: "k", URL: "https://a.example/", Method: "PUT",
			Header:  http.Header{"X-A": {"1", "2"}, "x-b": {""}, "X-None": nil},
			Payload: []byte("\x00\xffp"), Timeout: 90 * time.Second,
			Retry: &dispatch.RetryConfig{MaxAttempts: 3, MaxRetryDuration: time.Hour, MinBackoff: time.Second,
				MaxBackoff: -1, MaxDoublings: 5},
			Metadata: map[string]string{"b": "2", "a": "1"},
		},
		Named: true, Nonce: 1<<63 + 5,
	}
}

// goldenRecord is fullTask as version 1 has written it. It must stay readable for good: it is what servers hold.
const goldenRecord = `
	01 00000007 019ca9450a7b 01 00015f90
	88
	01 a1 6b
	02 b2 68747470733a2f2f612e6578616d706c652f
	03 a3 505554
	04 83 a3 582d41 92 a1 31 a1 32  a6 582d4e6f6e65 90  a3 782d62 91 a0
	05 c4 03 00ff70
	06 95 03 cf 0000034630b8a000 ce 3b9aca00 ff 05
	07 82 a1 61 a1 31 a1 62 a1 32
	08 cf 8000000000000005`

func TestGoldenRecord(t *testing.T) {
	t.Parallel()
	want := fullTask()
	body, err := encodeRecord(&want)
	ok(t, err)
	if got, want := hex.EncodeToString([]byte(stamped(body))), hex.EncodeToString([]byte(unhex(t, goldenRecord))); got != want {
		t.Errorf("encoded\n got %s\nwant %s", got, want)
	}
	var got dispatch.Task
	var named bool
	ok(t, decodeRecord(unhex(t, goldenRecord), &got, &named))
	if !reflect.DeepEqual(got, want.Task) || !named {
		t.Errorf("decoded\n got %+v\nwant %+v", got, want.Task)
	}
	if created := recordCreated(unhex(t, goldenRecord)); !created.Equal(epoch) {
		t.Errorf("created %v, want %v", created, epoch)
	}
}

// A later version may add fields, of any type, anywhere, and a longer RetryConfig.
func TestRecordOfALaterVersion(t *testing.T) {
	t.Parallel()
	record := unhex(t, `
		01 00000001 019ca9450a7b f3 000003e8
		8d
		63 c0   64 c3   65 a3 616263   66 93 01 92 02 03 80   67 81 a1 61 91 c0
		cd 0100 cb 400921fb54442d18
		68 c4 02 0001   ce 00010000 d9 02 6161   69 dc 0001 c2   6a de 0001 01 01
		01 a1 6b
		06 98 01 02 03 04 05 06 a3 6e6577 91 01
		6b da 0001 7a`)
	var got dispatch.Task
	var named bool
	ok(t, decodeRecord(record, &got, &named))
	want := dispatch.Task{Kind: "k", Timeout: time.Second, Retry: &dispatch.RetryConfig{MaxAttempts: 1, MaxRetryDuration: 2,
		MinBackoff: 3, MaxBackoff: 4, MaxDoublings: 5, Jitter: 6e-6}}
	if !reflect.DeepEqual(got, want) || !named {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A task's own retention comes after what version 1 had at first, and records without one are read as ever. None is
// stored as -1 ms.
func TestGoldenRetention(t *testing.T) {
	t.Parallel()
	for retention, field := range map[time.Duration]string{
		0: "81 01 a1 6b", 90 * time.Minute: "82 01 a1 6b 0a ce 005265c0", -time.Millisecond: "82 01 a1 6b 0a ff",
		999 * time.Microsecond: "81 01 a1 6b", // no client sends it
	} {
		want := dispatch.Submission{Task: dispatch.Task{Kind: "k", Timeout: time.Second, Retention: retention}}
		body, err := encodeRecord(&want)
		ok(t, err)
		if got := string(body); got != unhex(t, "00 000003e8"+field) {
			t.Errorf("retention of %v is encoded as %x", retention, got)
		}
		var got dispatch.Task
		var named bool
		ok(t, decodeRecord(stamped(body), &got, &named))
		if want := retention.Truncate(time.Millisecond); got.Retention != want {
			t.Errorf("retention of %v is read as %v", want, got.Retention)
		}
	}
	for _, field := range []string{"cf 7fffffffffffffff", "d3 8000000000000000", "a1 31"} {
		var got dispatch.Task
		var named bool
		if err := decodeRecord(stamped(unhex(t, "00 000003e8 81 0a"+field)), &got, &named); err == nil {
			t.Errorf("retention %s is read as %v", field, got.Retention)
		}
	}
}

func TestGoldenResult(t *testing.T) {
	t.Parallel()
	const golden = `01 00000001 84 01 00 02 00 03 90 06 c4 03 00ff52`
	text, err := encodeProgress(&dispatch.Progress{Attempts: 1, Result: []byte("\x00\xffR")})
	ok(t, err)
	if text != unhex(t, golden) {
		t.Errorf("encoded %x", text)
	}
	got, err := decodeProgress(unhex(t, golden))
	ok(t, err)
	if string(got.Result) != "\x00\xffR" || got.Attempts != 1 {
		t.Errorf("decoded %+v", got)
	}
}

const (
	goldenProgress = `
		01 00000002
		83
		01 cf 0000019ca9450a7b
		02 cf 0000019ca945155e
		03 92
		   88 01 01 02 cf 0000019ca9450a7b 03 cd 05dc 04 a7 772d616c696365 05 cf 0010000000000000 06 cd 01f4 07 a7 6e6f6e5f327878 08 a4 6f6f7073
		   80`
	goldenSettings = `
		01
		85
		01 cb 4004000000000000
		02 07
		03 ff
		04 cd 03e8
		05 95 19 00 ce 3b9aca00 00 10`
)

func fullProgress() dispatch.Progress {
	return dispatch.Progress{
		Attempts: 2, FirstAttempt: epoch, LastAttempt: epoch.Add(2787 * time.Millisecond),
		History: []dispatch.AttemptRecord{
			{Number: 1, StartedAt: epoch, Duration: 1500 * time.Millisecond, Worker: alice, Token: 1 << 52, Status: 500,
				ErrorKind: dispatch.KindNon2xx, Error: "oops"},
			{},
		},
	}
}

func TestGoldenProgress(t *testing.T) {
	t.Parallel()
	want := fullProgress()
	text, err := encodeProgress(&want)
	ok(t, err)
	if got, want := hex.EncodeToString([]byte(text)), hex.EncodeToString([]byte(unhex(t, goldenProgress))); got != want {
		t.Errorf("encoded\n got %s\nwant %s", got, want)
	}
	got, err := decodeProgress(unhex(t, goldenProgress))
	ok(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("decoded\n got %+v\nwant %+v", got, want)
	}
	// With fields of a later version.
	got, err = decodeProgress(unhex(t, `01 00000003 82 03 91 82 63 91 c0 01 03 64 a1 61`))
	ok(t, err)
	if want := (dispatch.Progress{Attempts: 3, History: []dispatch.AttemptRecord{{Number: 3}}}); !reflect.DeepEqual(got, want) {
		t.Errorf("decoded\n got %+v\nwant %+v", got, want)
	}
}

// What a clock that was set back makes of a duration is stored as none: progress that cannot be read would keep its task from ever
// running again.
func TestProgressOfAClockThatWentBack(t *testing.T) {
	t.Parallel()
	want := fullProgress()
	for _, d := range []time.Duration{-5 * time.Minute, -time.Millisecond, time.Millisecond} {
		want.History[0].Duration = d
		text, err := encodeProgress(&want)
		ok(t, err)
		want.History[0].Duration = max(d, 0)
		if got, err := decodeProgress(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("with a duration of %v\n got %+v, %v\nwant %+v", d, got, err, want)
		}
	}
}

func TestGoldenSettings(t *testing.T) {
	t.Parallel()
	want := dispatch.Queue{Rate: 2.5, Burst: 7, MaxConcurrent: -1, Weight: 1000,
		Retry: dispatch.RetryConfig{MaxAttempts: 25, MinBackoff: time.Second, MaxDoublings: 16}}
	text, err := encodeSettings(&want)
	ok(t, err)
	if got, want := hex.EncodeToString([]byte(text)), hex.EncodeToString([]byte(unhex(t, goldenSettings))); got != want {
		t.Errorf("encoded\n got %s\nwant %s", got, want)
	}
	got, err := decodeSettings(unhex(t, goldenSettings))
	ok(t, err)
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("decoded\n got %+v\nwant %+v", *got, want)
	}
	got, err = decodeSettings(unhex(t, `01 82 63 80 04 05`))
	ok(t, err)
	if !reflect.DeepEqual(*got, dispatch.Queue{Weight: 5}) {
		t.Errorf("decoded %+v", *got)
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	good := unhex(t, goldenRecord)
	for name, record := range map[string]string{
		"empty":              "",
		"only a header":      good[:headerBytes],
		"a part":             good[:len(good)-1],
		"something behind":   good + "\x00",
		"another version":    "\x02" + good[1:],
		"a list for a map":   good[:headerBytes] + "\x90",
		"text for a number":  good[:headerBytes] + "\x81\xa1x\x01",
		"a number for text":  good[:headerBytes] + "\x81\x01\x05",
		"a list for a text":  good[:headerBytes] + "\x81\x01\x91\x05",
		"a text for headers": good[:headerBytes] + "\x81\x04\xa1x",
		"a number in retry":  good[:headerBytes] + "\x81\x06\x05",
		"an extension":       good[:headerBytes] + "\x81\x01\xd4\x00\x00",
	} {
		var got dispatch.Task
		var named bool
		if err := decodeRecord(record, &got, &named); err == nil {
			t.Errorf("record with %s is read as %+v", name, got)
		}
	}
	for _, text := range []string{"\x01", "\x02\x00\x00\x00\x01\x80", "\x01\x00\x00\x00\x01", "\x01\x00\x00\x00\x01\x81\x03\x05"} {
		if p, err := decodeProgress(text); err == nil {
			t.Errorf("progress %q is read as %+v", text, p)
		}
	}
	for _, text := range []string{"", "\x01", "\x02\x80", "\x01\x81\x01\xa1x"} {
		if q, err := decodeSettings(text); err == nil {
			t.Errorf("settings %q are read as %+v", text, q)
		}
	}
	for _, text := range []string{"", "1", "1 ", "x w 1 1", " w", "99999999999999999999 w 1 1"} {
		if token, w, err := parseLease(text); err == nil {
			t.Errorf("lease %q is read as %d of %s", text, token, w)
		}
	}
}

// One call's record compares equal to itself, byte by byte, whatever the order in which Go walks its maps.
func TestRecordIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	s := fullTask()
	for i := range 50 {
		s.Header.Add("X-"+string(rune('a'+i%26)), "v")
		s.Metadata[string(rune('a'+i%26))] = "v"
	}
	first, err := encodeRecord(&s)
	ok(t, err)
	for range 50 {
		again, err := encodeRecord(&s)
		ok(t, err)
		if string(again) != string(first) {
			t.Fatal("another encoding of the same submission")
		}
	}
}

func TestWholeMilliseconds(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int64{
		0: 0, 1: 1, time.Microsecond: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Second: 1000,
	} {
		if got := ms(d); got != want {
			t.Errorf("%v is %d ms, want %d", d, got, want)
		}
	}
}
