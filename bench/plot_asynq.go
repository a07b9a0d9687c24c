package main

import (
	"context"
	"fmt"
)

// The curves of asynq, with one server and with four in one process, as in its entries.
func init() {
	for _, servers := range []int{1, 4} {
		name := "asynq"
		if servers > 1 {
			name = fmt.Sprintf("asynq, %d servers", servers)
		}
		throughputs = append(throughputs, throughput{name, func(ctx context.Context, e *env, n, concurrency int) (float64, error) {
			return asynqNoop(ctx, e, n, servers, concurrency)
		}})
	}
}
