//go:build !linux

package e2e

import "syscall"

// parentDeath: elsewhere the child ends with its standard input.
func parentDeath() *syscall.SysProcAttr { return nil }
