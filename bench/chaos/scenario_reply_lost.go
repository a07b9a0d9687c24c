package main

import "context"

func replyLost() Scenario {
	return Scenario{Name: "reply-lost", Run: func(context.Context, *Run) error { return nil }}
}
