//go:build !linux

package redistest

import "syscall"

// parentDeath has no counterpart here: a server survives its parent if the parent is killed.
func parentDeath() *syscall.SysProcAttr { return nil }
