package dispatch

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestNormalizeURL(t *testing.T) {
	path := func(n int) string { return "http://example.com/" + strings.Repeat("a", n-len("http://example.com/")) }
	for _, c := range []struct {
		name, raw string
		want      string // "" is refused
	}{
		{"http", "http://example.com/a?b=c", "http://example.com/a?b=c"},
		{"https with a port", "https://example.com:8443", "https://example.com:8443"},
		{"scheme in capitals", "HTTP://Example.com/", "http://Example.com/"},
		{"IPv4", "http://127.0.0.1/", "http://127.0.0.1/"},
		{"IPv6", "http://[::1]:8080/", "http://[::1]:8080/"},
		{"xn--", "http://xn--bcher-kva.example/", "http://xn--bcher-kva.example/"},
		{"path that is not ASCII", "http://example.com/ä", "http://example.com/%C3%A4"},
		{"empty query", "http://example.com/?", "http://example.com/?"},
		{"2083 characters", path(2083), path(2083)},

		{"empty", "", ""},
		{"2084 characters", path(2084), ""},
		{"2084 characters once encoded", path(2083-5) + "ää", ""},
		{"no scheme", "example.com/", ""},
		{"relative", "/a", ""},
		{"protocol-relative", "//example.com/", ""},
		{"ftp", "ftp://example.com/", ""},
		{"javascript", "javascript:alert(1)", ""},
		{"opaque", "http:example.com", ""},
		{"no host", "http:///a", ""},
		{"port without a host", "http://:80/", ""},
		{"user", "http://hidden@example.com/", ""},
		{"user and password", "http://user:hidden@example.com/", ""},
		{"empty user", "http://@example.com/", ""},
		{"fragment", "http://example.com/#hidden", ""},
		{"empty fragment", "http://example.com/#", ""},
		{"backslash", `http://example.com\hidden`, ""},
		{"backslash in the path", `http://example.com/a\hidden`, ""},
		{"space in the path", "http://example.com/a hidden", ""},
		{"space before", " http://example.com/", ""},
		{"space after", "http://example.com/ ", ""},
		{"newline", "http://example.com/\r\nX-Hidden: 1", ""},
		{"tab", "http://example.com/\thidden", ""},
		{"NUL", "http://example.com/\x00", ""},
		{"DEL", "http://example.com/\x7f", ""},
		{"host that is not ASCII", "http://bücher.example/", ""},
		{"host with an escape that is not ASCII", "http://b%C3%BCcher.example/", ""},
		{"escape cut short", "http://example.com/%zz?hidden", ""},
		{"password that is read as a port", "http://example.com:hidden/", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := normalizeURL(c.raw)
			if c.want == "" {
				requireField(t, err, "Task.URL")
				if strings.Contains(err.Error(), "hidden") {
					t.Errorf("the error quotes the URL: %v", err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestValidateHeader(t *testing.T) {
	sized := func(n int) http.Header {
		return http.Header{"A": {strings.Repeat("x", n-len("A: \r\n"))}}
	}
	for _, c := range []struct {
		name   string
		header http.Header
		ok     bool
	}{
		{"none", nil, true},
		{"usual", http.Header{"Authorization": {"Bearer x"}, "X-Custom": {"a", "b"}}, true},
		{"any casing", http.Header{"x-cUSTOM": {"a"}, "content-type": {"a/b"}}, true},
		{"User-Agent", http.Header{"User-Agent": {"me"}}, true},
		{"empty value", http.Header{"A": {""}}, true},
		{"no values", http.Header{"A": nil}, true},
		{"tab in a value", http.Header{"A": {"b\tc"}}, true},
		{"value that is not ASCII", http.Header{"A": {"ä"}}, true},
		{"80 KiB", sized(80 << 10), true},
		{"like Dispatch's", http.Header{"X-Dispatcher": {"a"}}, true},

		{"80 KiB and 1", sized(80<<10 + 1), false},
		{"empty name", http.Header{"": {"a"}}, false},
		{"name with a space", http.Header{"a b": {"hidden"}}, false},
		{"name with a colon", http.Header{"a:": {"hidden"}}, false},
		{"name with a newline", http.Header{"a\r\nb": {"hidden"}}, false},
		{"name that is not ASCII", http.Header{"ä": {"hidden"}}, false},
		{"CR in a value", http.Header{"A": {"hidden\rb"}}, false},
		{"LF in a value", http.Header{"A": {"ok", "hidden\nb"}}, false},
		{"NUL in a value", http.Header{"A": {"hidden\x00"}}, false},
		{"DEL in a value", http.Header{"A": {"hidden\x7f"}}, false},
		{"X-Dispatch-", http.Header{"X-Dispatch-Task-Id": {"hidden"}}, false},
		{"x-dispatch- in lower case", http.Header{"x-dispatch-anything": {"hidden"}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := validateHeader(c.header)
			if c.ok {
				if err != nil {
					t.Error(err)
				}
				return
			}
			requireField(t, err, "Task.Header")
			if strings.Contains(err.Error(), "hidden") {
				t.Errorf("the error quotes the value: %v", err)
			}
		})
	}
	for _, name := range []string{"Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Authenticate",
		"Proxy-Authorization", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade"} {
		for _, spelled := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			requireField(t, validateHeader(http.Header{spelled: {"x"}}), "Task.Header")
		}
	}
}

// FuzzNormalizeURL checks that what passes can be requested, stays as it is when it is checked again, and has nothing of
// what is refused.
func FuzzNormalizeURL(f *testing.F) {
	for _, seed := range []string{"http://example.com/a?b=c#d", "https://u:p@h:1/", `http://a\b`, "http://[::1%25a]/", "http://a:/?",
		"HTTPS://A.b/%2F/%zz", "http://ä/", "//a", "http://a//../b", "http://a?;", "http://[fe80::1]", "http://h:65536/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		normal, err := normalizeURL(raw)
		if err != nil {
			requireField(t, err, "Task.URL")
			return
		}
		if _, err := http.NewRequest("POST", normal, nil); err != nil {
			t.Fatalf("%q passes as %q and makes no request: %v", raw, normal, err)
		}
		u, err := url.Parse(normal)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.User != nil || u.Fragment != "" || len(normal) > maxURLBytes {
			t.Fatalf("%q passes as %q", raw, normal)
		}
		again, err := normalizeURL(normal)
		if err != nil || again != normal {
			t.Errorf("%q passes as %q, which passes as %q, %v", raw, normal, again, err)
		}
		if before, err := url.Parse(raw); err != nil || before.Host != u.Host || before.RawQuery != u.RawQuery {
			t.Errorf("%q passes as %q: another host or query", raw, normal)
		}
	})
}

// FuzzValidateHeader checks that what passes can be sent, and arrives under the names and values that were given.
func FuzzValidateHeader(f *testing.F) {
	for _, seed := range [][2]string{{"A", "b"}, {"x-custom", "a\tb"}, {"Host", "x"}, {"a b", "c"}, {"A", "a\r\nB: c"},
		{"X-Dispatch-Queue", "x"}, {"te", ""}, {"A", "\x00"}, {"A", " padded "}, {"ſ", "x"}, {"User-Agent", "x"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		if err := validateHeader(http.Header{name: {value}}); err != nil {
			requireField(t, err, "Task.Header")
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
		if got := strings.Count(wire.String(), "\n"); got > 6 {
			t.Errorf("%q: %q makes %d lines:\n%s", name, value, got, wire.String())
		}
	})
}
