package dispatch

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// Filter selects tasks for Tasks, ReplayDead and DeleteDead. The zero value selects all; of the fields that are set, a
// task has to match every one. The store does not know of them: whatever the filter, all tasks of the States are read. What
// cannot be read of a task (TaskInfo.Err) matches no field that is set, and does not keep the task from being replayed or deleted.
type Filter struct {
	// States are the states wanted; empty means every state.
	States []TaskState
	// Kind, when set, wants tasks of this Go handler only.
	Kind string
	// Host, when set, wants tasks whose URL has this host, without a port and whatever the case of its letters; of an IPv6
	// address without brackets.
	Host string
	// ErrorKind, when set, wants tasks whose last attempt failed for this reason. An attempt that runs is not yet one.
	ErrorKind ErrorKind
	// Since and Until, when set, want tasks whose last attempt began at Since or later and before Until, by the store's
	// clock. Tasks without attempts then do not match.
	Since, Until time.Time
}

func (f Filter) validate(queue string) error {
	for _, s := range f.States {
		if !slices.Contains(allStates, s) {
			return fieldErrorf("Filter.States", "%q is not one of %q", clip(string(s), 40), allStates)
		}
	}
	// Such a host would match no task, without a word.
	if strings.ContainsAny(f.Host, "/@[]") || strings.Count(f.Host, ":") == 1 {
		return fieldErrorf("Filter.Host", "is a host name or an address alone, without scheme, port or brackets")
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && f.Since.After(f.Until) {
		return fieldErrorf("Filter.Since", "is after Until")
	}
	return validateQueueName("Task.Queue", queue)
}

// matches says whether a task of a state that is wanted is wanted.
func (f Filter) matches(t *TaskInfo) bool {
	if f.Kind != "" && f.Kind != t.Kind {
		return false
	}
	if f.ErrorKind != "" && f.ErrorKind != t.Progress.lastError() {
		return false
	}
	last := t.Progress.LastAttempt
	if !f.Since.IsZero() && (last.IsZero() || last.Before(f.Since)) {
		return false
	}
	if !f.Until.IsZero() && (last.IsZero() || !last.Before(f.Until)) {
		return false
	}
	return f.Host == "" || strings.EqualFold(f.Host, hostOf(t.URL))
}

// lastError is why the last attempt failed; empty when it succeeded or there was none.
func (p *Progress) lastError() ErrorKind {
	if len(p.History) == 0 {
		return ""
	}
	return p.History[len(p.History)-1].ErrorKind
}

// hostOf is the host of a URL without its port, or empty.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Hostname()
	}
	return ""
}
