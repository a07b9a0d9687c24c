package worker

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// The vectors were computed with Python and with OpenSSL. The keys are the bytes 00 to 1f, and 64 to 83.
const (
	newSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	oldSecret = "whsec_ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoM="

	signedID   = "msg_dispatch_0001"
	signedUnix = 1700000000
	signedBody = `{"type":"task.deliver","data":{"user_id":42}}`

	byNewSecret = "v1,d0pwH/cxpBFswwJ08XNZUfQcQxKfuOVpirAizBe0LO0="
	byOldSecret = "v1,E59YBD/ju2i6W5uJdNXagIYl1VT8PqA/2tvjeKGa5wA="
	emptyByNew  = "v1,voM50dvmJsUsn1j0+DjXKitfe3SV8F17oyEUlotbg2M="
)

func mustParse(t testing.TB, texts ...string) []Secret {
	t.Helper()
	var secrets []Secret
	for _, text := range texts {
		s, err := ParseSecret(text)
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, s)
	}
	return secrets
}

// mustVerifier returns the receiver's side, by the reference library.
func mustVerifier(t testing.TB, secret string) *standardwebhooks.Webhook {
	t.Helper()
	w, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// arrived is header as a server sees it.
func arrived(header http.Header) http.Header {
	h := make(http.Header)
	for name, values := range header {
		for _, v := range values {
			h.Add(name, v)
		}
	}
	return h
}

func TestSignVectors(t *testing.T) {
	for _, c := range []struct {
		name      string
		secrets   []string
		body      string
		signature string
	}{
		{"new", []string{newSecret}, signedBody, byNewSecret},
		{"old", []string{oldSecret}, signedBody, byOldSecret},
		{"without prefix", []string{strings.TrimPrefix(newSecret, "whsec_")}, signedBody, byNewSecret},
		{"rotation", []string{newSecret, oldSecret}, signedBody, byNewSecret + " " + byOldSecret},
		{"rotation, old first", []string{oldSecret, newSecret}, signedBody, byOldSecret + " " + byNewSecret},
		{"empty body", []string{newSecret}, "", emptyByNew},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := http.Header{}
			// A fraction of a second is cut off, and the time zone does not matter.
			at := time.Unix(signedUnix, 999_999_999).In(time.FixedZone("", 3600))
			if err := Sign(header, mustParse(t, c.secrets...), signedID, at, []byte(c.body)); err != nil {
				t.Fatal(err)
			}
			want := http.Header{
				"webhook-id":        {signedID},
				"webhook-timestamp": {"1700000000"},
				"webhook-signature": {c.signature},
			}
			if !maps.EqualFunc(header, want, slices.Equal) {
				t.Errorf("got  %v\nwant %v", header, want)
			}
			for _, secret := range c.secrets {
				if err := mustVerifier(t, secret).VerifyIgnoringTimestamp([]byte(c.body), arrived(header)); err != nil {
					t.Errorf("the reference library: %v", err)
				}
			}
		})
	}
	// The other way round: what the reference library makes is what Sign makes.
	theirs, err := mustVerifier(t, oldSecret).Sign(signedID, time.Unix(signedUnix, 0), []byte(signedBody))
	if err != nil || theirs != byOldSecret {
		t.Errorf("the reference library signs with %q, %v; want %q", theirs, err, byOldSecret)
	}
}

func TestSignReplaces(t *testing.T) {
	header := http.Header{
		"Webhook-Id": {"forged"}, "webhook-id": {"forged", "twice"}, "WEBHOOK-TIMESTAMP": {"1"},
		"Webhook-Signature": {"v1,forged"}, "wEBHOOK-sIGNATURE": {"v1,forged"},
		"Webhook-Identity": {"stays"}, "Content-Type": {"application/json"},
	}
	secrets := mustParse(t, newSecret)
	for range 2 { // the second time it replaces its own
		if err := Sign(header, secrets, signedID, time.Unix(signedUnix, 0), []byte(signedBody)); err != nil {
			t.Fatal(err)
		}
		want := http.Header{
			"webhook-id": {signedID}, "webhook-timestamp": {"1700000000"}, "webhook-signature": {byNewSecret},
			"Webhook-Identity": {"stays"}, "Content-Type": {"application/json"},
		}
		if !maps.EqualFunc(header, want, slices.Equal) {
			t.Fatalf("got  %v\nwant %v", header, want)
		}
	}
	// Adding to one of the headers must not reach into the next.
	values := map[string][]string(header)
	values[webhookID] = append(values[webhookID], "another")
	if got := values[webhookTimestamp]; !slices.Equal(got, []string{"1700000000"}) {
		t.Errorf("after an append to webhook-id, webhook-timestamp is %q", got)
	}
}

func TestSignErrors(t *testing.T) {
	secrets := mustParse(t, newSecret, oldSecret)
	for _, c := range []struct {
		name    string
		secrets []Secret
		id      string
		want    string
	}{
		{"no secrets", nil, signedID, "worker: there is no signing secret"},
		{"zero secret", []Secret{{}}, signedID, "worker: a signing secret is empty"},
		{"zero secret among others", []Secret{secrets[0], {}}, signedID, "worker: a signing secret is empty"},
		{"no id", secrets, "", "worker: the webhook id is empty"},
		{"dot", secrets, "a.b", `worker: the webhook id "a.b" holds the byte '.': only visible ASCII without the dot can be signed`},
		{"space at the end", secrets, "a ", `holds the byte ' '`},
		{"line end", secrets, "a\r\nX-Forged: 1", `holds the byte '\r'`},
		{"delete", secrets, "a\x7f", `holds the byte '\x7f'`},
		{"not ASCII", secrets, "é", `holds the byte 'Ã'`},
		{"long", secrets, strings.Repeat("a", 1000) + ".", `"` + strings.Repeat("a", maxQuoted) + `"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := http.Header{"Webhook-Id": {"as it was"}}
			err := Sign(header, c.secrets, c.id, time.Unix(signedUnix, 0), nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || Classify(0, err) != KindConfig {
				t.Errorf("got %v of kind %q, want %s", err, Classify(0, err), c.want)
			}
			if len(header) != 1 || header["Webhook-Id"][0] != "as it was" {
				t.Errorf("the header has become %v", header)
			}
		})
	}
}

// TestSignOnTheWire sends what Sign made to a receiver that uses the reference library, its clock included.
func TestSignOnTheWire(t *testing.T) {
	body := []byte(signedBody)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		for _, secret := range []string{newSecret, oldSecret} { // a receiver before and one after the rotation
			if err == nil {
				err = mustVerifier(t, secret).Verify(got, r.Header)
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
		}
	}))
	defer srv.Close()
	d := newTestDeliverer(t, nil)
	secrets := mustParse(t, newSecret, oldSecret)

	deliver := func(at time.Time, sent []byte) Result {
		header := http.Header{}
		if err := Sign(header, secrets, signedID, at, body); err != nil {
			t.Fatal(err)
		}
		return d.Deliver(t.Context(), Request{URL: srv.URL, Header: header, Body: sent})
	}
	if res := deliver(time.Now(), body); res.Kind != "" {
		t.Errorf("a good signature: %+v", res)
	}
	if res := deliver(time.Now(), bytes.Replace(body, []byte("42"), []byte("43"), 1)); res.Status != http.StatusUnauthorized {
		t.Errorf("a tampered body: %+v", res)
	}
	if res := deliver(time.Now().Add(-time.Hour), body); res.Status != http.StatusUnauthorized {
		t.Errorf("an old timestamp: %+v", res)
	}

	head := make(chan string, 1)
	r := newReceiver(t, func(c *conn) {
		var text strings.Builder
		for {
			line, err := c.r.ReadString('\n')
			text.WriteString(line)
			if err != nil || line == "\r\n" {
				break
			}
		}
		head <- text.String()
		c.say(noContent)
	})
	header := http.Header{}
	if err := Sign(header, secrets, signedID, time.Unix(signedUnix, 0), body); err != nil {
		t.Fatal(err)
	}
	if res := d.Deliver(t.Context(), Request{URL: r.url(), Header: header, Body: body}); res.Kind != "" {
		t.Fatalf("%+v", res)
	}
	got := await(t, head, "request")
	for _, line := range []string{
		"\r\nwebhook-id: " + signedID + "\r\n",
		"\r\nwebhook-timestamp: 1700000000\r\n",
		"\r\nwebhook-signature: " + byNewSecret + " " + byOldSecret + "\r\n",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("the request has no line %q:\n%s", line, got)
		}
	}
}

// TestSignTampered changes each part of what is signed.
func TestSignTampered(t *testing.T) {
	verifier := mustVerifier(t, newSecret)
	for _, c := range []struct {
		name   string
		tamper func(header http.Header, body []byte)
		want   bool
	}{
		{"nothing", func(http.Header, []byte) {}, true},
		{"body", func(_ http.Header, body []byte) { body[len(body)-1] ^= 1 }, false},
		{"id", func(h http.Header, _ []byte) { h.Set("webhook-id", signedID+"0") }, false},
		{"timestamp", func(h http.Header, _ []byte) { h.Set("webhook-timestamp", "1700000001") }, false},
		{"signature", func(h http.Header, _ []byte) { h.Set("webhook-signature", byOldSecret) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			header, body := http.Header{}, []byte(signedBody)
			if err := Sign(header, mustParse(t, newSecret), signedID, time.Unix(signedUnix, 0), body); err != nil {
				t.Fatal(err)
			}
			got := arrived(header)
			c.tamper(got, body)
			if err := verifier.VerifyIgnoringTimestamp(body, got); (err == nil) != c.want {
				t.Errorf("the reference library says %v", err)
			}
		})
	}
}

func BenchmarkSign(b *testing.B) {
	at := time.Unix(signedUnix, 0)
	for _, size := range []int{128, 64 << 10} {
		for _, texts := range [][]string{{newSecret}, {newSecret, oldSecret}} {
			b.Run(fmt.Sprintf("%dB/%dsecrets", size, len(texts)), func(b *testing.B) {
				secrets, body := mustParse(b, texts...), bytes.Repeat([]byte("x"), size)
				header := maps.Clone(benchmarkHeader)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if err := Sign(header, secrets, signedID, at, body); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
