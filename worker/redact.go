package worker

import (
	"errors"
	"net/textproto"
	"net/url"
	"strings"
)

// maxErrorText is how many bytes of an error's text are kept: a receiver can make it as long as a header.
const maxErrorText = 256

// redact returns err in words that may be logged and stored. The errors of net/http quote two things that must not be:
// the URL, and what the receiver has sent, which may be an echo of the request. Quoted they are indeed, so the text is
// kept up to its first quotation mark; the exceptions are named. An error that is clean is returned as it is, for
// errors.Is and errors.As.
//
// The cause of a context is the caller's own and stays as it is.
func redact(err error) error {
	if ended, ok := errors.AsType[*endedError](err); ok {
		return ended
	}
	for {
		wrapped, ok := errors.AsType[*url.Error](err)
		if !ok || wrapped.Err == nil {
			break
		}
		err = wrapped.Err
	}
	if _, ok := errors.AsType[textproto.ProtocolError](err); ok {
		return errors.New("worker: malformed response header") // the text has the header, without quotation marks
	}
	text := err.Error()
	if i := strings.IndexByte(text, '"'); i >= 0 || len(text) > maxErrorText {
		if i < 0 {
			i = len(text)
		}
		return errors.New(strings.TrimRight(clip(text[:i], maxErrorText), " :("))
	}
	return err
}
