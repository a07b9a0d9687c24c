package main

import (
	"encoding/json"
	"testing"
	"time"
)

func TestPayload(t *testing.T) {
	at := time.Now()
	for name, p := range map[string][]byte{"plain": payload, "stamped": stamped(at)} {
		if len(p) != payloadBytes || !json.Valid(p) {
			t.Errorf("%s: %d bytes: %s", name, len(p), p)
		}
	}
	if got, err := stampOf(stamped(at)); err != nil || !got.Equal(at) {
		t.Errorf("stamp of %v is %v, %v", at, got, err)
	}
	if _, err := stampOf(payload); err == nil {
		t.Error("a payload without a stamp has one")
	}
}
