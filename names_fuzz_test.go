package dispatch

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dispatchkit/dispatch/cluster"
)

// FuzzNames compares what checks names with the patterns that its messages tell, and with what keys of Redis and scripts
// need: a name is one word without braces.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"", "default", "-a", "a.b", "a{b}", "a b", "a\n", "é", "\xff", strings.Repeat("a", 100), strings.Repeat("a", 101),
		strings.Repeat("a", 501), "whsec_AAAA", "a/b", "~", "*", "\x00", "a\u2028"} {
		f.Add(name)
	}
	patterns := []struct {
		field   string
		pattern *regexp.Regexp
		check   func(field, name string) error
	}{
		{"Task.Queue", regexp.MustCompile(queueNamePattern), validateQueueName},
		{"Task.ID", regexp.MustCompile(taskIDPattern), func(field, name string) error { return validateTaskID(field, TaskID(name)) }},
		{"Task.Secret", regexp.MustCompile(secretNamePattern), validateSecretName},
		{"Entry.Name", regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`), func(_, name string) error { return validateEntryName(name) }},
		{"Task.Requires", resourcePattern, func(field, name string) error { return validateResources(field, cluster.Resources{name: 1}) }},
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, p := range patterns {
			err := p.check(p.field, name)
			want := p.pattern.MatchString(name) && !(p.field == "Task.Secret" && strings.HasPrefix(name, "whsec_"))
			if (err == nil) != want {
				t.Errorf("%q as %s: %v", name, p.field, err)
			}
			if err == nil && strings.ContainsAny(name, "{} \t\r\n=\x00") {
				t.Errorf("%q passes as %s", name, p.field)
			}
			if err != nil {
				requireField(t, err, p.field)
				if len(err.Error()) > 800 || strings.ContainsAny(err.Error(), "\n\x00") {
					t.Errorf("%q as %s: the error is %q", name, p.field, err)
				}
				if p.field == "Task.Secret" && len(name) > 12 && strings.Contains(err.Error(), name) {
					t.Errorf("the error quotes what may be a secret: %v", err)
				}
			}
		}
	})
}

// FuzzUniqueID makes the ID of a task of what it does: a valid one, the same for the same work, and another one when a byte
// moves from one of its parts to the next.
func FuzzUniqueID(f *testing.F) {
	f.Add("", "k", "", []byte("p"))
	f.Add("key", "", "http://a.example/", []byte(nil))
	f.Add("", "content", "POST", []byte("\x00"))
	f.Fuzz(func(t *testing.T, key, kind, url string, payload []byte) {
		id := func(key, kind, url string, payload []byte) TaskID {
			return uniqueID(&Task{Unique: &Unique{Key: key}, Kind: kind, URL: url, Method: http.MethodPost, Payload: payload})
		}
		own := id(key, kind, url, payload)
		if validateTaskID("Task.ID", own) != nil || own != id(key, kind, url, payload) || len(own) > 60 {
			t.Errorf("ID %q", own)
		}
		others := []TaskID{id(key+"x", kind, url, payload), hashedID("u-", "content", key, kind, url, string(payload))}
		if key == "" {
			others = append(others, id("", kind, url+"x", payload), id("", kind, url, append([]byte("x"), payload...)))
			if len(payload) > 0 {
				others = append(others, id("", kind, url+string(payload[:1]), payload[1:]))
			}
		}
		for i, other := range others {
			if other == own {
				t.Errorf("%q %q %q %q: the ID is that of other work, %d", key, kind, url, payload, i)
			}
		}
	})
}

// FuzzTraceContext compares with the grammar of W3C, and checks that nothing that is not one becomes a header.
func FuzzTraceContext(f *testing.F) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, seed := range [][2]string{{parent, ""}, {parent, "a=b,c=d"}, {strings.ToUpper(parent), ""}, {"01" + parent[2:], "a=b"},
		{strings.Replace(parent, "b7ad6b7169203331", strings.Repeat("0", 16), 1), ""}, {parent, "a=\n"}, {parent, strings.Repeat("x", 513)},
		{parent + "-", ""}, {parent, "\xc3\xa9"}, {"", "a=b"}} {
		f.Add(seed[0], seed[1])
	}
	grammar := regexp.MustCompile(`\A00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}\z`)
	zero := regexp.MustCompile(`\A00-(0{32}-|[0-9a-f]{32}-0{16}-)`)
	f.Fuzz(func(t *testing.T, parent, state string) {
		span := newTraceContext(parent, state)
		if valid := grammar.MatchString(parent) && !zero.MatchString(parent); valid != (span.parent == parent && parent != "") {
			t.Errorf("%q: %+v", parent, span)
		}
		h := http.Header{}
		span.addTo(h)
		if len(h) > 0 {
			var wire strings.Builder
			if err := h.Write(&wire); err != nil || strings.Count(wire.String(), "\n") != len(h) || len(wire.String()) > 700 {
				t.Errorf("%q, %q become %q, %v", parent, state, wire.String(), err)
			}
		}
		task := span.onto(Task{Kind: "k"})
		if again := newTraceContext(task.Metadata[traceparent], task.Metadata[tracestate]); again != span {
			t.Errorf("%+v comes back as %+v", span, again)
		}
	})
}

// FuzzFilterHost checks that the tasks of every URL that can be stored can be selected by its host.
func FuzzFilterHost(f *testing.F) {
	for _, u := range []string{"http://a.example/", "http://A.example:8080/", "http://[::1]:80/", "http://[fe80::1%25eth0]/", "http://1.2.3.4/", "http://a%41/",
		"http://[::1%2525]/", "http://a:/", "http://a@b/"} {
		f.Add(u, "a.example")
	}
	f.Fuzz(func(t *testing.T, raw, host string) {
		u, err := normalizeURL(raw)
		if err != nil {
			return
		}
		own := Filter{Host: hostOf(u)}
		if err := own.validate("q"); err != nil || !own.matches(&TaskInfo{Task: Task{URL: u}}) {
			t.Errorf("the host %q of %q cannot be selected: %v", own.Host, u, err)
		}
		other := Filter{Host: host}
		var bad *FieldError
		switch err := other.validate("q"); {
		case err != nil && (!errors.As(err, &bad) || bad.Field != "Filter.Host"):
			t.Errorf("%q: %v", host, err)
		case err == nil && host != "" && utf8.ValidString(host) && other.matches(&TaskInfo{Task: Task{URL: u}}) != strings.EqualFold(host, hostOf(u)):
			t.Errorf("%q matches %q: %v", host, u, err)
		}
	})
}
