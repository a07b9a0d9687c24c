package main

import (
	"github.com/alicebob/miniredis/v2"
)

// serverURL is the address of the Redis to use, and how to stop it if it is an embedded one.
func serverURL(redisURL, cluster string) (url string, stop func(), err error) {
	switch {
	case cluster != "":
		return "redis://" + cluster, func() {}, nil
	case redisURL != "":
		return redisURL, func() {}, nil
	}
	server, err := miniredis.Run()
	if err != nil {
		return "", nil, err
	}
	return "redis://" + server.Addr() + "/0", server.Close, nil
}
