package main

import (
	"context"
	"time"
)

// Leader waits until one of some processes leads, as the store has it, and returns it.
func (r *Run) Leader(ctx context.Context, among []*Process) (*Process, error) {
	raw, err := r.Raw()
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	var leader *Process
	err = Until(ctx, 15*time.Second, "one of the workers leads", func() (bool, error) {
		id := raw.Get(ctx, key("~", "leader")).Val() // an error is nobody, as well
		for _, p := range among {
			if id != "" && p.Worker() == id {
				leader = p
			}
		}
		return leader != nil, nil
	})
	return leader, err
}
