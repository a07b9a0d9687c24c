package worker

import (
	"encoding/base64"
	"log/slog"
	"strings"
)

const (
	secretPrefix = "whsec_"
	// minSecret and maxSecret are the bytes of a key, by Standard Webhooks.
	minSecret = 24
	maxSecret = 64
)

// redacted stands for every Secret. ParseSecret refuses it, so that what was printed cannot come back as a key.
const redacted = "[redacted]"

// Secret is the symmetric key of a receiver, for Sign. It comes from ParseSecret, and there is no way to read it back:
// fmt, log/slog, encoding/json and all that goes by encoding.TextMarshaler show "[redacted]", and no verb of fmt shows
// the key, not even where the Secret is an unexported field or has lost its methods. The zero Secret is no key; Sign
// refuses it. Secrets cannot be compared. They never change, so goroutines may share them.
type Secret struct {
	// key is a closure because nothing that goes by reflection sees into one. fmt calls no method of an unexported
	// field, so of a Secret that is one it prints what is here; a pointer it follows for a verb that fits no pointer.
	key func() []byte
}

// ParseSecret reads a secret as the specification of Standard Webhooks serializes it: "whsec_" and the padded standard
// base64 of 24 to 64 bytes. As in its libraries, the prefix may be missing. White space is refused, line ends
// included: one receiver's library would skip it and another's would not.
//
// Errors are KindConfig to Classify, and never quote text.
func ParseSecret(text string) (Secret, error) {
	if text == "" {
		return Secret{}, configErrorf("the signing secret is empty")
	}
	if strings.ContainsAny(text, " \t\r\n") { // the decoder would skip line ends
		return Secret{}, configErrorf("the signing secret holds white space")
	}
	if strings.HasPrefix(text, "whsk_") || strings.HasPrefix(text, "whpk_") {
		return Secret{}, configErrorf("the signing secret is an ed25519 key: only symmetric secrets, whsec_..., are supported")
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, secretPrefix))
	if err != nil {
		return Secret{}, configErrorf("the signing secret is not padded standard base64, after an optional %s", secretPrefix)
	}
	if n := len(key); n < minSecret || n > maxSecret {
		return Secret{}, configErrorf("the signing secret has %d bytes, want %d to %d", n, minSecret, maxSecret)
	}
	return Secret{key: func() []byte { return key }}, nil
}

// IsZero says whether s is the zero Secret, which is no key.
func (s Secret) IsZero() bool { return s.key == nil }

// String returns "[redacted]".
func (s Secret) String() string { return redacted }

// GoString returns "[redacted]".
func (s Secret) GoString() string { return redacted }

// LogValue returns "[redacted]".
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText returns "[redacted]" and no error: a Secret inside something else does not keep that from being encoded.
// What is encoded cannot be decoded.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
