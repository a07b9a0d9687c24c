package worker

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The names of Standard Webhooks, spelled as it spells them. They are not in http.Header's canonical form, and must not
// be: the map's spelling is what goes over the wire.
const (
	webhookID        = "webhook-id"
	webhookTimestamp = "webhook-timestamp"
	webhookSignature = "webhook-signature"
)

// Sign sets the headers by which a receiver knows, by Standard Webhooks (https://www.standardwebhooks.com), that body
// is from someone who has the secret, is whole, and is recent:
//
//   - webhook-id is id, which names the message: it must be the same in every attempt, because receivers go by it to
//     drop what they have seen.
//   - webhook-timestamp is at in Unix seconds. It is the time of the attempt; receivers usually refuse what is more
//     than five minutes off.
//   - webhook-signature is, for each secret, "v1," and the padded base64 of the HMAC-SHA256 of "id.timestamp.body", in
//     the order of secrets, separated by spaces. A receiver accepts any that matches, so while a secret is being
//     replaced both the new and the old one are named.
//
// The three replace what header has under these names in any spelling, and are in lower case in the map, so that
// header.Get does not find them. Other entries stay. header must not be nil or belong to a Request that was delivered:
// clone it for each attempt. The cost is one pass over body per secret; body is not copied or kept.
//
// It is an error if there are no secrets, if one is zero, or if id is empty or holds anything but visible ASCII
// characters without the dot, which would leave it open where the id ends. Then header is as it was. Errors are
// KindConfig to Classify.
func Sign(header http.Header, secrets []Secret, id string, at time.Time, body []byte) error {
	if err := checkWebhookID(id); err != nil {
		return err
	}
	if len(secrets) == 0 {
		return configErrorf("there is no signing secret")
	}
	for _, s := range secrets {
		if s.IsZero() { // its HMAC is one that anybody can make
			return configErrorf("a signing secret is empty")
		}
	}

	timestamp := strconv.FormatInt(at.Unix(), 10)
	head := make([]byte, 0, len(id)+len(timestamp)+2)
	head = append(append(head, id...), '.')
	head = append(append(head, timestamp...), '.')

	const version = "v1,"
	size := len(version) + base64.StdEncoding.EncodedLen(sha256.Size) + 1
	signatures := make([]byte, 0, size*len(secrets))
	var sum [sha256.Size]byte
	for i, s := range secrets {
		mac := hmac.New(sha256.New, s.key())
		mac.Write(head)
		mac.Write(body)
		if i > 0 {
			signatures = append(signatures, ' ')
		}
		signatures = append(signatures, version...)
		signatures = base64.StdEncoding.AppendEncode(signatures, mac.Sum(sum[:0]))
	}

	for name := range header {
		if isWebhookField(name) {
			delete(header, name)
		}
	}
	values := []string{id, timestamp, string(signatures)} // one allocation; the capacities keep the three apart
	header[webhookID] = values[0:1:1]
	header[webhookTimestamp] = values[1:2:2]
	header[webhookSignature] = values[2:3:3]
	return nil
}

// checkWebhookID refuses what would arrive as something else than was signed. A space at either end of a header's value
// is cut off on the way; what lies beyond ASCII has no agreed meaning in one.
func checkWebhookID(id string) error {
	if id == "" {
		return configErrorf("the webhook id is empty")
	}
	for i := range len(id) {
		if c := id[i]; c <= ' ' || c >= 0x7f || c == '.' {
			return configErrorf("the webhook id %q holds the byte %q: only visible ASCII without the dot can be signed",
				clip(id, maxQuoted), c)
		}
	}
	return nil
}

func isWebhookField(name string) bool {
	switch len(name) {
	case len(webhookID):
		return strings.EqualFold(name, webhookID)
	case len(webhookTimestamp): // and of webhookSignature
		return strings.EqualFold(name, webhookTimestamp) || strings.EqualFold(name, webhookSignature)
	}
	return false
}
