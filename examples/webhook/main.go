// Webhook shows deliveries that are signed, and how their secret is replaced while they go on. The receiver verifies them
// with the official library of Standard Webhooks. A delivery that is repeated keeps its webhook-id, so that the receiver
// acts on it once; a forged one is refused.
//
//	go run ./examples/webhook
//
// sender.go is the program that uses Dispatch, receiver.go is somebody else's, and forger.go is a thief's.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/dispatchkit/dispatch/redisstore"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	server, err := miniredis.Run()
	if err != nil {
		return err
	}
	defer server.Close()
	store, err := redisstore.Open(ctx, "redis://"+server.Addr(), redisstore.Options{})
	if err != nil {
		return err
	}
	defer store.Close()

	r, stopReceiver := startReceiver()
	defer stopReceiver()
	s, stopSender, err := startSender(ctx, store, r.url)
	if err != nil {
		return err
	}
	return errors.Join(tell(ctx, s, r), stopSender())
}

// tell replaces a secret step by step, with a delivery after each.
func tell(ctx context.Context, s *sender, r *receiver) error {
	oldSecret, newSecret := makeSecret(), makeSecret()

	fmt.Println("sender and receiver share a secret:")
	s.vault.set(oldSecret)
	if err := r.trust(oldSecret); err != nil {
		return err
	}
	r.stumble() // at the first delivery
	if err := s.deliver(ctx, 1, 2); err != nil {
		return err
	}

	fmt.Println("the sender signs with a new secret and the old one:")
	s.vault.set(newSecret, oldSecret)
	if err := s.deliver(ctx, 2, 1); err != nil {
		return err
	}
	fmt.Println("the receiver goes over to the new one, in its own time:")
	if err := r.trust(newSecret); err != nil {
		return err
	}
	if err := s.deliver(ctx, 3, 1); err != nil {
		return err
	}
	fmt.Println("the sender drops the old one:")
	s.vault.set(newSecret)
	if err := s.deliver(ctx, 4, 1); err != nil {
		return err
	}

	fmt.Println("a thief has the old secret, and what went over the wire:")
	if err := forgeWith(ctx, r.url, oldSecret); err != nil {
		return err
	}
	if err := alter(ctx, r.url, r.lastDelivery()); err != nil {
		return err
	}

	requests, booked, refused := r.totals()
	fmt.Printf("booked %d orders of 4, from %d signed requests; refused %d\n", booked, requests, refused)
	if booked != 4 || requests != 5 || refused != 2 {
		return fmt.Errorf("want 4 orders from 5 requests, and 2 that are refused")
	}
	return nil
}
