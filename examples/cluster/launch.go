//go:build !windows

package main

import "github.com/dispatchkit/dispatch/internal/redistest"

const canLaunch = true

// launch starts an installed redis-server on a free port.
func launch() (url string, stop func(), err error) {
	server, err := redistest.Launch(redistest.Config{})
	if err != nil {
		return "", nil, err
	}
	return server.URL(), server.Stop, nil
}
