//go:build !linux

package redistest

import "syscall"

// ParentDeath is nil: there is no counterpart here, and a child survives its parent if the parent is killed, unless it watches its input.
// So it stays in the parent's process group, where Ctrl-C at least ends both.
func ParentDeath() *syscall.SysProcAttr { return nil }
