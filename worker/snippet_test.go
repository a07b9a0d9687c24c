package worker

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

func TestSnippet(t *testing.T) {
	tests := []struct {
		name, body, want string
		cut              bool
	}{
		{"empty", "", "", false},
		{"text", "no such user", "no such user", false},
		{"whole characters", "año 日本 🙂", "año 日本 🙂", true},
		{"cut in two bytes", "a\xc3", "a", true},
		{"cut in three bytes", "a\xe6\x97", "a", true},
		{"cut in four bytes", "a\xf0\x9f\x99", "a", true},
		{"broken off, not cut", "a\xf0\x9f\x99", "a?", false},
		{"invalid", "a\xff\xfeb\xc3(", "a?b?(", true},
		{"continuation bytes only", "\x80\x80\x80\x80\x80", "?", true},
		{"nothing but half a character", "\xe6\x97", "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := snippet([]byte(tt.body), tt.cut); got != tt.want {
				t.Errorf("snippet(%q) = %q, want %q", tt.body, got, tt.want)
			}
		})
	}
}

func FuzzSnippet(f *testing.F) {
	for _, seed := range []string{"", "abc", "año\xc3", "\xe6\x97", "\xff\xfe", "日本🙂", strings.Repeat("é", 600)} {
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, cut bool) {
		got := snippet(body, cut)
		if !utf8.ValidString(got) {
			t.Errorf("%q is not UTF-8", got)
		}
		if len(got) > len(body) {
			t.Errorf("%d bytes became %d", len(body), len(got))
		}
		if utf8.Valid(body) && got != string(body) {
			t.Errorf("%q became %q", body, got)
		}
		if cut && !utf8.Valid(body) && utf8.ValidString(string(body)+"\x80") && !strings.HasPrefix(string(body), got) {
			t.Errorf("half a character of %q was not left out: %q", body, got)
		}
	})
}

// TestReadBodyStopsInTime: however the body comes, no more than 64 KiB of it are read and 1 KiB is kept.
func TestReadBodyStopsInTime(t *testing.T) {
	broken := errors.New("broken")
	tests := []struct {
		name      string
		body      io.Reader
		kept      int
		truncated bool
		err       error
		left      int // bytes of the body that stay unread
	}{
		{"short", text(10), 10, false, nil, 0},
		{"as long as the snippet", text(maxSnippet), maxSnippet, false, nil, 0},
		{"one byte longer", text(maxSnippet + 1), maxSnippet, true, nil, 0},
		{"at the limit", text(maxBodyBytes), maxSnippet, true, nil, 0},
		{"beyond the limit", text(maxBodyBytes + 5000), maxSnippet, true, nil, 5000},
		{"beyond the limit, in odd pieces", io.MultiReader(text(2000), text(maxBodyBytes)), maxSnippet, true, nil, 2000},
		{"byte by byte", iotest.OneByteReader(text(maxBodyBytes + 1)), maxSnippet, true, nil, 1},
		{"with its end", iotest.DataErrReader(text(3000)), maxSnippet, true, nil, 0},
		{"broken off", io.MultiReader(text(10), iotest.ErrReader(broken)), 10, true, broken, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, truncated, err := readBody(&http.Response{StatusCode: 200, Body: io.NopCloser(tt.body)})
			if got != strings.Repeat("x", tt.kept) || truncated != tt.truncated || err != tt.err {
				t.Errorf("got %d bytes, truncated %t, error %v; want %d, %t, %v",
					len(got), truncated, err, tt.kept, tt.truncated, tt.err)
			}
			if left, _ := io.ReadAll(tt.body); tt.err == nil && len(left) != tt.left {
				t.Errorf("%d bytes left unread, want %d", len(left), tt.left)
			}
		})
	}
}

func text(n int) io.Reader { return strings.NewReader(strings.Repeat("x", n)) }
