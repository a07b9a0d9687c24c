package worker

import "strings"

// maxQuoted is how many bytes of a bad method or header name an error quotes.
const maxQuoted = 40

// checkField refuses a header field that net/http would refuse, and those that frame the message. net/http writes the
// latter itself and ignores them in their canonical spelling, but would send "content-length" beside its own: two
// lengths for one body is how requests are smuggled.
func checkField(name string, values []string) error {
	if !isToken(name) {
		return configErrorf("%q is not a header name", clip(name, maxQuoted))
	}
	if framesMessage(name) {
		return configErrorf("the header %s cannot be set: it follows from the URL and the body", clip(name, maxQuoted))
	}
	for _, v := range values {
		if !isFieldValue(v) {
			return configErrorf("the header %s has a value with a control character", clip(name, maxQuoted))
		}
	}
	return nil
}

func framesMessage(name string) bool {
	switch len(name) {
	case len("Host"):
		return strings.EqualFold(name, "Host")
	case len("Trailer"):
		return strings.EqualFold(name, "Trailer")
	case len("Content-Length"):
		return strings.EqualFold(name, "Content-Length")
	case len("Transfer-Encoding"):
		return strings.EqualFold(name, "Transfer-Encoding")
	}
	return false
}

// isToken says whether s is a token by RFC 9110, section 5.6.2: what methods and header names are made of.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		alphanumeric := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alphanumeric && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// isFieldValue says whether s may be the value of a header field: no control character but the tab.
func isFieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// clip shortens s to n bytes.
func clip(s string, n int) string { return s[:min(len(s), n)] }
