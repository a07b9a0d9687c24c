package audit

import (
	"errors"
	"testing"
	"time"
)

func claimed1(client int, call, end, got int64) Op {
	return Op{Client: client, Call: call, Return: end, Kind: OpClaim, Got: got, Known: true}
}

func settled1(client int, call, end, token int64, applied, final bool) Op {
	return Op{Client: client, Call: call, Return: end, Kind: OpSettle, Token: token, Applied: applied, Final: final, Known: true}
}

func extended(client int, call, end, token int64, applied bool) Op {
	return Op{Client: client, Call: call, Return: end, Kind: OpExtend, Token: token, Applied: applied, Known: true}
}

// again is a claim whose earlier answers were lost.
func again(op Op, at int64) Op {
	op.Again = at
	return op
}

// unanswered is a call of which nobody knows what it did.
func unanswered(op Op) Op {
	op.Known, op.Return, op.Got, op.Applied = false, 0, 0, false
	return op
}

func TestLinearizable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		ops  []Op
		want bool
	}{
		{"nothing", nil, true},
		{"one life", []Op{claimed1(0, 0, 1, 5), extended(0, 2, 3, 5, true), settled1(0, 4, 5, 5, true, true), claimed1(1, 6, 7, 0)}, true},
		{"a retry", []Op{claimed1(0, 0, 1, 5), settled1(0, 2, 3, 5, true, false), claimed1(1, 4, 5, 6), settled1(1, 6, 7, 6, true, true)}, true},
		{"a claim that was made again may have leased and lost the task", []Op{
			again(claimed1(0, 0, 9, 0), 6), settled1(1, 3, 4, 5, true, false), claimed1(1, 7, 8, 7),
		}, true},
		{"it may have lost it while it was made again", []Op{again(claimed1(0, 0, 9, 0), 2), settled1(1, 3, 4, 5, true, false)}, true},
		{"it may not hold it still", []Op{again(claimed1(0, 0, 4, 0), 2), settled1(1, 5, 6, 5, true, false)}, false},
		{"it may have leased nothing", []Op{again(claimed1(0, 0, 4, 0), 2), claimed1(1, 5, 6, 7), settled1(1, 7, 8, 7, true, true)}, true},
		{"it leases nothing after its answer", []Op{again(claimed1(0, 0, 2, 0), 1), claimed1(1, 5, 6, 7), settled1(1, 8, 9, 5, true, false)}, false},
		{"a claim that was made once may not have", []Op{claimed1(0, 0, 9, 0), settled1(1, 3, 4, 5, true, false)}, false},
		{"leased to two", []Op{claimed1(0, 0, 1, 5), claimed1(1, 2, 3, 6)}, false},
		{"leased to two at once", []Op{claimed1(0, 0, 9, 5), claimed1(1, 0, 9, 6)}, false},
		{"a token given out twice", []Op{claimed1(0, 0, 1, 5), settled1(0, 2, 3, 5, true, false), claimed1(1, 4, 5, 5)}, false},
		{"a token that falls", []Op{claimed1(0, 0, 1, 5), settled1(0, 2, 3, 5, true, false), claimed1(1, 4, 5, 4)}, false},
		{"claimed after its end", []Op{claimed1(0, 0, 1, 5), settled1(0, 2, 3, 5, true, true), claimed1(1, 4, 5, 6)}, false},
		{"claimed while it ends", []Op{claimed1(0, 0, 1, 5), settled1(0, 2, 9, 5, true, false), claimed1(1, 4, 5, 6)}, true},
		{"a stale settle", []Op{
			claimed1(0, 0, 1, 5), settled1(2, 2, 3, 5, true, false), claimed1(1, 4, 5, 6), settled1(0, 6, 7, 5, true, true),
		}, false},
		{"a stale settle that is refused", []Op{
			claimed1(0, 0, 1, 5), settled1(2, 2, 3, 5, true, false), claimed1(1, 4, 5, 6), settled1(0, 6, 7, 5, false, true),
			settled1(1, 8, 9, 6, true, true),
		}, true},
		{"a stale extend", []Op{
			claimed1(0, 0, 1, 5), settled1(2, 2, 3, 5, true, false), claimed1(1, 4, 5, 6), extended(0, 6, 7, 5, true),
		}, false},
		{"an extend refused to the holder", []Op{claimed1(0, 0, 1, 5), extended(0, 2, 3, 5, false), settled1(0, 4, 5, 5, true, true)}, false},
		{"a settle refused to the holder", []Op{claimed1(0, 0, 1, 5), settled1(0, 2, 3, 5, false, true)}, false},
		{"two settles of one lease", []Op{claimed1(0, 0, 1, 5), settled1(0, 2, 9, 5, true, false), settled1(2, 2, 9, 5, true, false)}, false},
		{"one of two settles of one lease", []Op{claimed1(0, 0, 1, 5), settled1(0, 2, 9, 5, true, false), settled1(2, 2, 9, 5, false, true)}, true},
		{"the answer to a settle was lost, and it took effect", []Op{
			claimed1(0, 0, 1, 5), unanswered(settled1(0, 2, 0, 5, true, false)), claimed1(1, 4, 5, 6),
		}, true},
		{"the answer to a settle was lost, and it did not", []Op{
			claimed1(0, 0, 1, 5), unanswered(settled1(0, 2, 0, 5, true, false)), extended(0, 4, 5, 5, true),
		}, true},
		{"a settle cannot take effect before it is made", []Op{
			claimed1(0, 0, 1, 5), claimed1(1, 4, 5, 6), unanswered(settled1(0, 6, 0, 5, true, false)),
		}, false},
		{"a settle whose answer was lost ended the task, and it was claimed", []Op{
			claimed1(0, 0, 1, 5), unanswered(settled1(0, 2, 0, 5, true, true)), claimed1(1, 4, 5, 6),
		}, false},
		{"the answer to a claim was lost, and it leased the task", []Op{
			unanswered(claimed1(0, 0, 0, 0)), claimed1(1, 2, 3, 0), settled1(2, 4, 5, 5, true, false), claimed1(1, 6, 7, 6),
		}, true},
		{"the answer to a claim was lost, and it did not", []Op{unanswered(claimed1(0, 0, 0, 0)), claimed1(1, 2, 3, 5)}, true},
		{"nobody can have leased what the sweeper settles", []Op{settled1(2, 4, 5, 5, true, false)}, false},
		{"a hidden token is above those before", []Op{
			claimed1(0, 0, 1, 5), settled1(0, 2, 3, 5, true, false), unanswered(claimed1(1, 4, 0, 0)), settled1(2, 6, 7, 4, true, false),
		}, false},
		{"an extend whose answer was lost changes nothing", []Op{
			claimed1(0, 0, 1, 5), unanswered(extended(0, 2, 0, 5, true)), settled1(0, 4, 5, 5, true, true),
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got, err := Linearizable(c.ops, 10*time.Second); err != nil || got != c.want {
				t.Errorf("%v, %v; want %v", got, err, c.want)
			}
		})
	}
}

func TestLinearizableRefuses(t *testing.T) {
	t.Parallel()
	for _, op := range []Op{{}, {Kind: OpSettle}, {Kind: OpExtend, Known: true}, {Kind: OpClaim, Call: 2, Return: 1, Known: true}} {
		if _, err := Linearizable([]Op{op}, time.Second); err == nil {
			t.Errorf("%+v was taken", op)
		}
	}
}

func TestUndecided(t *testing.T) {
	t.Parallel()
	// Many claims at once, all but one of which got nothing and may be anywhere, and no order that explains the last settle.
	ops := []Op{claimed1(0, 0, 1000, 5)}
	for i := range 40 {
		ops = append(ops, unanswered(Op{Client: i + 1, Kind: OpClaim, Call: int64(i)}), settled1(i+50, 0, 1000, int64(i+10), false, false))
	}
	ops = append(ops, settled1(0, 1001, 1002, 3, true, true))
	if _, err := Linearizable(ops, time.Millisecond); !errors.Is(err, ErrUndecided) {
		t.Error(err)
	}
}
