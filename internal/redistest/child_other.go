//go:build !linux

package redistest

import "syscall"

// ParentDeath is nil: there is no counterpart here, and a child survives its parent if the parent is killed, unless it watches its input.
func ParentDeath() *syscall.SysProcAttr { return nil }
