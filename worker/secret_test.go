package worker

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func TestParseSecret(t *testing.T) {
	encoded := func(n int) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xfb}, n)) }
	const notBase64 = "worker: the signing secret is not padded standard base64, after an optional whsec_"
	for _, c := range []struct {
		name, text string
		want       string // the error
	}{
		{"shortest", "whsec_" + encoded(24), ""},
		{"longest", "whsec_" + encoded(64), ""},
		{"without prefix", encoded(32), ""},
		{"last character with unused bits", "whsec_" + strings.Replace(encoded(32), "s=", "t=", 1), ""},

		{"nothing", "", "worker: the signing secret is empty"},
		{"prefix only", "whsec_", "worker: the signing secret has 0 bytes, want 24 to 64"},
		{"too short", "whsec_" + encoded(23), "worker: the signing secret has 23 bytes, want 24 to 64"},
		{"too long", "whsec_" + encoded(65), "worker: the signing secret has 65 bytes, want 24 to 64"},
		{"far too long", encoded(1 << 16), "worker: the signing secret has 65536 bytes, want 24 to 64"},
		{"line end", "whsec_" + encoded(32) + "\n", "worker: the signing secret holds white space"},
		{"line end within", "whsec_\r\n" + encoded(32), "worker: the signing secret holds white space"},
		{"space", " whsec_" + encoded(32), "worker: the signing secret holds white space"},
		{"unpadded", "whsec_" + strings.TrimRight(encoded(32), "="), notBase64},
		{"padding only", "whsec_====", notBase64},
		{"URL alphabet", "whsec_" + base64.URLEncoding.EncodeToString(bytes.Repeat([]byte{0xfb}, 32)), notBase64},
		{"prefix twice", "whsec_whsec_" + encoded(32), notBase64},
		{"prefix in capitals", "WHSEC_" + encoded(32), notBase64},
		{"hex", strings.Repeat("0f", 25), notBase64},
		{"password", "correct-horse-battery-staple", notBase64},
		{"what a Secret prints", redacted, notBase64},
		{"two", "whsec_" + encoded(32) + ",whsec_" + encoded(32), notBase64},
		{"ed25519 secret", "whsk_" + encoded(64),
			"worker: the signing secret is an ed25519 key: only symmetric secrets, whsec_..., are supported"},
		{"ed25519 public", "whpk_" + encoded(32),
			"worker: the signing secret is an ed25519 key: only symmetric secrets, whsec_..., are supported"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := ParseSecret(c.text)
			if c.want == "" {
				if err != nil || s.IsZero() {
					t.Fatalf("got %v, zero %t", err, s.IsZero())
				}
				return
			}
			if err == nil || err.Error() != c.want || Classify(0, err) != KindConfig {
				t.Errorf("got %v of kind %q, want %s", err, Classify(0, err), c.want)
			}
			if !s.IsZero() {
				t.Error("an error and a Secret")
			}
		})
	}
}

// wrapped has the methods of Secret lost in two ways: a field that fmt may not call, and a type of its own.
type (
	wrapped struct {
		Name   string
		Open   Secret
		closed Secret
		list   []Secret
		ptr    *Secret
	}
	bare Secret
)

// TestSecretRedacted prints a Secret in every way, inside of what programs log.
func TestSecretRedacted(t *testing.T) {
	key := []byte("c4n4ry-c4n4ry-c4n4ry-c4n4ry-c4n4ry")
	s := mustParse(t, "whsec_"+base64.StdEncoding.EncodeToString(key))[0]
	// The first bytes in all ways of writing them; without separators, so that "99, 52" and "0x63, 0x34" are found too.
	forms := []string{
		canary, base64.StdEncoding.EncodeToString(key)[:8], hex.EncodeToString(key[:4]),
		"9952110", "14364156", "1100011110100", // decimal, octal, binary
	}
	leaks := func(text string) bool {
		flat := strings.NewReplacer(" ", "", ",", "", "0x", "", "0X", "", "U+00", "", "0o", "", "'", "", "\\x", "").Replace(text)
		for _, form := range forms {
			if strings.Contains(strings.ToLower(flat), strings.ToLower(form)) {
				return true
			}
		}
		return false
	}
	for _, text := range []string{fmt.Sprint(key), fmt.Sprintf("%s %x", key, key), fmt.Sprintf("%#v", key),
		fmt.Sprintf("%o", key), fmt.Sprintf("%b", key), fmt.Sprintf("% X", key), fmt.Sprintf("%U", key)} {
		if !leaks(text) {
			t.Errorf("this test would not find %q", text)
		}
	}

	values := map[string]any{
		"Secret": s, "*Secret": &s, "[]Secret": []Secret{s}, "[1]Secret": [1]Secret{s},
		"map": map[string]Secret{"a": s}, "struct": wrapped{"n", s, s, []Secret{s}, &s},
		"*struct": &wrapped{"n", s, s, []Secret{s}, &s}, "own type": bare(s), "[]own type": []bare{bare(s)},
		"any": []any{s, &s}, "error": fmt.Errorf("with %v: %w", s, http.ErrBodyNotAllowed),
	}
	for name, v := range values {
		t.Run(name, func(t *testing.T) {
			for _, flags := range []string{"", "+", "#", " ", "-40", "040", ".3", "+#", "# "} {
				for _, verb := range "vsqxXdobcUtpTeEfFgGOw!" {
					format := "%" + flags + string(verb)
					if text := fmt.Sprintf(format, v); leaks(text) {
						t.Errorf("%s shows the key: %s", format, text)
					}
				}
			}
			if text := fmt.Sprint(v) + fmt.Sprintln(v); leaks(text) {
				t.Errorf("Sprint shows the key: %s", text)
			}
			text, err := json.Marshal(v)
			if err != nil || leaks(string(text)) {
				t.Errorf("encoding/json: %s, %v", text, err)
			}
			var buf bytes.Buffer
			for _, h := range []slog.Handler{slog.NewTextHandler(&buf, nil), slog.NewJSONHandler(&buf, nil)} {
				l := slog.New(h)
				l.Info("m", "v", v)
				l.With("v", v).WithGroup("g").Info("m", slog.Group("h", "v", v))
			}
			if leaks(buf.String()) {
				t.Errorf("log/slog shows the key: %s", buf.String())
			}
		})
	}

	// And what it says instead.
	text, err := json.Marshal(struct {
		S Secret
		P *Secret
		Z Secret `json:",omitzero"`
	}{S: s, P: &s})
	if want := `{"S":"[redacted]","P":"[redacted]"}`; err != nil || string(text) != want {
		t.Errorf("encoding/json: got %s, %v; want %s", text, err, want)
	}
	var buf bytes.Buffer
	slog.New(slog.NewTextHandler(&buf, nil)).Info("m", "s", s)
	if !strings.Contains(buf.String(), "s=[redacted]") {
		t.Errorf("log/slog: %s", buf.String())
	}
	for _, got := range []string{s.String(), s.GoString(), s.LogValue().String(), Secret{}.String(), fmt.Sprintf("%v", s),
		fmt.Sprintf("%#v", s), fmt.Sprintf("%+v", &s)} {
		if got != redacted {
			t.Errorf("got %q, want %q", got, redacted)
		}
	}
}

// FuzzParseSecret compares with the reference library: it takes all that ParseSecret takes, and as the same key.
func FuzzParseSecret(f *testing.F) {
	for _, text := range []string{"", "whsec_", newSecret, oldSecret, newSecret[6:], newSecret + "\n", "whsk_AAAA", redacted,
		strings.TrimRight(newSecret, "="), "whsec_" + strings.Repeat("A", 88), "whsec_" + strings.Repeat("/+", 16)} {
		f.Add(text)
	}
	at := time.Unix(signedUnix, 0)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSecret(text)
		if err != nil {
			if !s.IsZero() || Classify(0, err) != KindConfig {
				t.Errorf("zero %t, %v", s.IsZero(), err)
			}
			if len(text) >= minSecret && strings.Contains(err.Error(), text) {
				t.Errorf("the error quotes the secret: %v", err)
			}
			return
		}
		reference, err := standardwebhooks.NewWebhook(text)
		if err != nil {
			t.Fatalf("the reference library refuses it: %v", err)
		}
		header := http.Header{}
		if err := Sign(header, []Secret{s}, signedID, at, []byte(signedBody)); err != nil {
			t.Fatal(err)
		}
		if err := reference.VerifyIgnoringTimestamp([]byte(signedBody), arrived(header)); err != nil {
			t.Errorf("the reference library: %v", err)
		}
	})
}
