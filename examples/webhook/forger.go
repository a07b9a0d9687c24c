package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// forgeWith makes up an order and signs it with a stolen secret.
func forgeWith(ctx context.Context, url, secret string) error {
	signer, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return err
	}
	id, now, body := "forged", time.Now(), []byte(`{"order":5}`)
	signature, err := signer.Sign(id, now, body)
	if err != nil {
		return err
	}
	header := make(http.Header)
	header.Set(standardwebhooks.HeaderWebhookID, id)
	header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	return mustBeRefused(ctx, url, delivery{header: header, body: body})
}

// alter sends what was overheard, with another body under the same signature.
func alter(ctx context.Context, url string, overheard delivery) error {
	overheard.body = []byte(`{"order":6}`)
	return mustBeRefused(ctx, url, overheard)
}

func mustBeRefused(ctx context.Context, url string, forged delivery) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(forged.body))
	if err != nil {
		return err
	}
	req.Header = forged.header
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		return fmt.Errorf("the forged request %s is answered %s", forged.body, response.Status)
	}
	return nil
}
