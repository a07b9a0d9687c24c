package worker

import (
	"strings"
	"unicode/utf8"
)

// snippet makes text of the beginning of a body. If the body was cut there, a character that was cut in two is left
// out; all other bytes that are not UTF-8 become "?", one for each run of them, so that the text never grows.
func snippet(b []byte, cut bool) string {
	if cut {
		b = b[:len(b)-cutRune(b)]
	}
	return strings.ToValidUTF8(string(b), "?")
}

// cutRune returns how many bytes at the end of b begin a character that b does not hold to its end.
func cutRune(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
