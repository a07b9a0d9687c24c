package main

import (
	"os/exec"

	"github.com/alicebob/miniredis/v2"
)

// serverURL is the address of the Redis to use, and how to stop it if it is this program's own: a redis-server if one is
// installed, or else an embedded stand-in, so that the example needs nothing but Go.
func serverURL(given string) (url string, stop func(), err error) {
	if given != "" {
		return given, func() {}, nil
	}
	if _, err := exec.LookPath("redis-server"); err == nil && canLaunch {
		say("starting a redis-server")
		return launch()
	}
	say("no redis-server here: starting an embedded one")
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true) // unlike in a test, time passes: the lock of a dead leader has to end
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	return "redis://" + server.Addr() + "/0", server.Close, nil
}
