package audit

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// The kinds of calls.
const (
	OpClaim  = "claim"
	OpSettle = "settle"
	OpExtend = "extend"
)

// Op is one call to the store about one task. A history holds the calls of everybody who claims, settles or sweeps the task.
type Op struct {
	Client int
	// Call and Return are when the call was made and when its answer came, in any unit of one clock.
	Call, Return int64
	// Kind is one of the Op constants.
	Kind string
	// Token is what a settle or an extend was made with.
	Token int64
	// Got is the token that a claim has leased the task under; 0 if it got nothing, which it may at any time, as the task may
	// not be due.
	Got int64
	// Repeated says of a claim that its first answer was lost, and it was made again until there was one. That tells of what is still
	// leased: so it may have leased the task, and lost it to somebody else before the answer.
	Repeated bool
	// Applied says whether a settle or an extend took effect.
	Applied bool
	// Known says whether there was an answer. Without one, Return, Got and Applied mean nothing: the call may have taken effect
	// at any time after it was made, or not at all.
	Known bool
	// Final says of a settle that it ends the task. The other ones bring it back.
	Final bool
}

// ErrUndecided is returned when the time was over before there was an answer.
var ErrUndecided = errors.New("audit: no answer within the time allowed")

// Linearizable says whether the calls about one task can be put into an order that agrees with their times and explains all
// answers. The task exists, and is leased to nobody, at the beginning. The search is exponential in the number of calls
// without an answer; a limit of 0 is none.
func Linearizable(ops []Op, limit time.Duration) (bool, error) {
	history := make([]porcupine.Operation, len(ops))
	for i, op := range ops {
		if err := op.validate(); err != nil {
			return false, fmt.Errorf("audit: call %d: %w", i, err)
		}
		end := op.Return
		if !op.Known {
			end = math.MaxInt64
		}
		history[i] = porcupine.Operation{ClientId: op.Client, Input: op, Call: op.Call, Return: end}
	}
	switch porcupine.CheckOperationsTimeout(register.ToModel(), history, limit) {
	case porcupine.Ok:
		return true, nil
	case porcupine.Illegal:
		return false, nil
	}
	return false, ErrUndecided
}

func (op *Op) validate() error {
	switch {
	case op.Kind != OpClaim && op.Kind != OpSettle && op.Kind != OpExtend:
		return fmt.Errorf("kind %q", op.Kind)
	case op.Kind != OpClaim && op.Token <= 0:
		return fmt.Errorf("%s without a token", op.Kind)
	case op.Known && op.Return < op.Call:
		return fmt.Errorf("%s was answered before it was made", op.Kind)
	}
	return nil
}

// leaseState is the state of the model. current is the token of the lease: 0 is none, and hidden one that nobody has heard of yet, because
// the answer to its claim was lost. last is the highest token that is known to have been given out.
type leaseState struct {
	current, last int64
	ended         bool
}

const hidden = -1

// register is a task as a register of leases. A call without an answer that has never arrived is one that arrives after all
// others: each has a step in every state.
var register = porcupine.NondeterministicModel{
	Init: func() []any { return []any{leaseState{}} },
	Step: func(state, input, _ any) []any {
		s, op := state.(leaseState), input.(Op)
		if op.Kind == OpClaim {
			return s.claim(op)
		}
		return s.use(op)
	},
}

// claim leases a task that is free under a token above all earlier ones.
func (s leaseState) claim(op Op) []any {
	free := !s.ended && s.current == 0
	switch {
	case !op.Known && free:
		return []any{leaseState{current: hidden, last: s.last}}
	case free && op.Repeated && op.Got == 0:
		return []any{s, leaseState{current: hidden, last: s.last}}
	case !op.Known || op.Got == 0:
		return []any{s}
	case free && op.Got > s.last:
		return []any{leaseState{current: op.Got, last: op.Got}}
	}
	return nil
}

// use settles or extends a lease, and does nothing unless the token is the current one.
func (s leaseState) use(op Op) []any {
	// A hidden token may be any that is higher than all before, so also this one, or not.
	mayHold := s.current == op.Token || s.current == hidden && op.Token > s.last
	mayMiss := s.current != op.Token
	after := leaseState{current: op.Token, last: op.Token}
	if op.Kind == OpSettle {
		after.current, after.ended = 0, op.Final
	}
	var out []any
	if mayHold && (op.Applied || !op.Known) {
		out = append(out, after)
	}
	if mayMiss && !(op.Known && op.Applied) {
		out = append(out, s)
	}
	return out
}
