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
	// Again is when a claim was made for the last time, whose earlier answers were lost; 0 is one that was made once. Its answer tells
	// of all that it has leased and that is leased still. So if it got nothing, it may have leased the task before Again, and lost it to
	// somebody else before Return.
	Again int64
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
	var history []porcupine.Operation
	add := func(s step, from, to int64) {
		history = append(history, porcupine.Operation{ClientId: s.Client, Input: s, Call: from, Return: to})
	}
	for i, op := range ops {
		if err := op.validate(); err != nil {
			return false, fmt.Errorf("audit: call %d: %w", i, err)
		}
		s := step{Op: op, hidden: int64(-1 - i)}
		switch {
		case !op.Known:
			add(s, op.Call, math.MaxInt64)
		case op.Again > 0 && op.Got == 0:
			add(s, op.Call, op.Again)
			s.gone = true
			add(s, op.Again+1, max(op.Return, op.Again+1)) // after the other: what touches in time is taken to overlap
		default:
			add(s, op.Call, op.Return)
		}
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
	case op.Known && (op.Return < op.Call || op.Again > op.Return || op.Again > 0 && op.Again < op.Call):
		return fmt.Errorf("%s was answered before it was made", op.Kind)
	}
	return nil
}

// step is one call in the model, or a part of one.
type step struct {
	Op
	hidden int64 // below 0: stands for the token of this claim, if nobody has heard of it
	gone   bool  // of a claim that was made again: only that it does not hold the task any more
}

// leaseState is the state of the model. current is the token of the lease: 0 is none, and below 0 one that nobody has heard of yet,
// because the answer to its claim was lost. last is the highest token that is known to have been given out.
type leaseState struct {
	current, last int64
	ended         bool
}

// register is a task as a register of leases. A call without an answer that has never arrived is one that arrives after all
// others: each has a step in every state.
var register = porcupine.NondeterministicModel{
	Init: func() []any { return []any{leaseState{}} },
	Step: func(state, input, _ any) []any {
		s, c := state.(leaseState), input.(step)
		if c.Kind == OpClaim {
			return s.claim(c)
		}
		return s.use(c.Op)
	},
}

// claim leases a task that is free under a token above all earlier ones.
func (s leaseState) claim(c step) []any {
	free := !s.ended && s.current == 0
	unheard := leaseState{current: c.hidden, last: s.last}
	switch {
	case c.gone && s.current == c.hidden:
		return nil
	case c.gone:
		return []any{s}
	case !c.Known && free:
		return []any{unheard}
	case c.Known && c.Again > 0 && c.Got == 0 && free:
		return []any{s, unheard}
	case !c.Known || c.Got == 0:
		return []any{s}
	case free && c.Got > s.last:
		return []any{leaseState{current: c.Got, last: c.Got}}
	}
	return nil
}

// use settles or extends a lease, and does nothing unless the token is the current one.
func (s leaseState) use(op Op) []any {
	// A hidden token may be any that is higher than all before, so also this one, or not.
	mayHold := s.current == op.Token || s.current < 0 && op.Token > s.last
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
