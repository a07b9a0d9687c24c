package redistest

import (
	"fmt"
	"os/exec"
)

// Installed is an error when a program of Redis that the back ends need is not on PATH: redis-server, or redis-cli, which makes
// clusters.
func Installed() error {
	for _, program := range []string{"redis-server", "redis-cli"} {
		if err := onPath(program); err != nil {
			return err
		}
	}
	return nil
}

func onPath(program string) error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("redistest: install Redis to run this: %w", err)
	}
	return nil
}
