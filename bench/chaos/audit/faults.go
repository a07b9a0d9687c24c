package audit

// FaultReplay is an act of an administrator: the task begins anew, with its first attempt.
const FaultReplay = "replay"

// lasting are faults that stay until one of the mending ones is written for the same target. Any other word is a fault that
// happens and is over.
var (
	lasting = map[string]bool{
		"stop": true, "blackhole": true, "half-open": true, "halfopen": true, "refuse": true, "delay": true, "throttle": true,
		"loss": true,
	}
	mending = map[string]bool{"cont": true, "heal": true, "accept": true}
)

// faults are what was done to processes and servers, in order of time.
type faults []*Event

// hits says whether a fault is one of a process. What is done to a server is not: what it may cause the rules of the scenario
// say.
func hits(f *Event, process string) bool {
	return f.Target == "" || f.Target == AnyWorker || process == AnyWorker || f.Target == process
}

// touched says whether something happened to a process between two times, or was still going on.
func (all faults) touched(process string, from, to int64) bool {
	ongoing := make(map[string]bool) // by target
	for _, f := range all {
		switch {
		case f.At > to:
			return ongoing[f.Target]
		case !hits(f, process):
		case f.At >= from && !mending[f.Fault]:
			return true
		case lasting[f.Fault]:
			ongoing[f.Target] = true
		case mending[f.Fault]:
			if f.At >= from && ongoing[f.Target] {
				return true
			}
			delete(ongoing, f.Target)
		}
	}
	return len(ongoing) > 0
}

// any says whether anything happened anywhere between two times, the mending of it included.
func (all faults) any(from, to int64) bool {
	for _, f := range all {
		if f.At >= from && f.At <= to {
			return true
		}
	}
	return false
}
