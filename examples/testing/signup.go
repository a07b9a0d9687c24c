// Package signup is a small program that uses Dispatch, to show how its test looks: see signup_test.go.
//
//	go test ./examples/testing
package signup

import (
	"context"
	"time"

	"github.com/dispatchkit/dispatch"
)

// Service signs users up.
type Service struct {
	// Tasks is where it enqueues.
	Tasks *dispatch.Client
	// Hook is a URL that hears of new users.
	Hook string
}

// SignUp tells the hook of a new user, and reminds the user a day later.
func (s *Service) SignUp(ctx context.Context, user string) (hook dispatch.TaskID, err error) {
	hook, err = s.Tasks.Enqueue(ctx, dispatch.Task{URL: s.Hook + "/users/" + user})
	if err != nil {
		return hook, err
	}
	remind, err := dispatch.NewTask("remind", user)
	if err != nil {
		return hook, err
	}
	remind.Delay = 24 * time.Hour
	_, err = s.Tasks.Enqueue(ctx, remind)
	return hook, err
}
