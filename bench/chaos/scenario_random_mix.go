package main

import "context"

func randomMix() Scenario {
	return Scenario{Name: "random-mix", Run: func(context.Context, *Run) error { return nil }}
}
