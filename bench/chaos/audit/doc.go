// Package audit decides whether a run kept its promises. It shares no code with what it judges: it knows the words of the
// ledger, the layout of the keys, and nothing else of Dispatch. A test over go list keeps it so.
//
// Every process of a run appends what it does to a file of its own in one directory, with a [Log]. When all of them have
// ended, [Read] reads the directory back, [Snapshot] reads what Redis holds, and [Check] compares the two with [Rules]:
//
//	lost        a task whose enqueue was acknowledged came to no end and is gone, or was to have ended and has not
//	forgotten   a task that would be lost, if the documented window of a failover did not cover it: a number, and no finding
//	forged      a write took effect that its token did not entitle to: two ends, an attempt after the end, a token twice
//	early       an attempt started before its task was due
//	overlap     two attempts of one task ran at once although nothing had happened to the first
//	miscounted  the numbers of a task's attempts do not follow from their outcomes
//	duplicates  attempts that no outcome of the attempt before explains
//	leftover    keys remain that should not
//	broken      what Redis holds contradicts itself
//
// [Linearizable] is for short histories of calls to the store itself: whether they can be put into one order.
//
// # What counts as proof
//
// Lines are written after the fact, by processes that may be killed before they write. So a missing line proves nothing where
// a fault explains it, and the order of the lines of two processes proves nothing at all. What proves something are tokens,
// attempt numbers, which outcomes end a task, and times where the gap is one that no delay can make: a delivery that started
// before it was due, an enqueue that was asked for after the last attempt began.
//
// # What this does not promise
//
// A run without findings is not a proof of anything but that run. An attempt that starts and whose process is killed before
// the line is written is not seen; nor is a lost task whose handler has succeeded and whose worker died before it could tell
// what the store said. All times are taken as those of one clock: a ledger of two machines cannot be checked, nor one during
// which the machine's clock was set. An ID that is used again after its task has ended is told apart only as far as the
// times of the enqueues allow.
package audit
