package scheduler

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write what the scheduler answers into testdata; know why it changed")

// TestStories plays the files of testdata. A file is a sequence of blocks with an empty line between them: commands, a
// line "----", and what they answer. Lines that begin with # are comments.
//
//	process places=4 cap=10 shared what comes first: the Options
//	queue a rate=2 burst=4 concurrent=1 weight=3
//	due a in=500ms                 now, without in
//	tick 500ms
//	next                           a grant, or when to ask again
//	grants                         all grants there are, and when to ask again
//	turns 4                        whose turn it is, four times; each claims one task, has more, and is done
//	claimed a leased=3 next=1s retry=2s blocked
//	late a
//	done a 3
//	returned a 3
//	reset a
//	forget a
//	show                           where each queue stands
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(text), "# ") {
				t.Error("the first line does not say what the story shows")
			}
			told := tell(t, string(text))
			if told == string(text) {
				return
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(told), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("the story goes another way now (-rewrite accepts it):\n%s", difference(string(text), told))
		})
	}
}

// tell plays a story and returns it with the answers that it got.
func tell(t *testing.T, text string) string {
	story := &story{now: time.Unix(1_700_000_000, 0)}
	var out strings.Builder
	for block := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n\n") {
		if out.Len() > 0 {
			out.WriteString("\n")
		}
		commands, _, played := strings.Cut(block+"\n", "----\n")
		out.WriteString(commands)
		if !played {
			continue // a comment that stands alone
		}
		out.WriteString("----\n")
		answered := out.Len()
		for line := range strings.Lines(commands) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "#") {
				continue
			}
			answer, err := story.play(strings.Fields(line))
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			out.WriteString(answer)
			if err := story.s.check(story.now); err != nil {
				t.Fatalf("after %q: %v", line, err)
			}
		}
		if out.Len() == answered {
			out.WriteString("ok\n")
		}
	}
	return out.String()
}

// difference shows what was told from the first line on that is not what was written, with the two lines before.
func difference(written, told string) string {
	w, s := strings.Split(written, "\n"), strings.Split(told, "\n")
	i := 0
	for i < min(len(w), len(s))-1 && w[i] == s[i] {
		i++
	}
	return fmt.Sprintf("line %d, written:\n  %s\ntold:\n%s", i+1, w[i], strings.Join(s[max(i-2, 0):], "\n"))
}

// story is a scheduler and its time.
type story struct {
	s   *Scheduler
	now time.Time
}

// play carries out one command and returns its answer, in whole lines.
func (y *story) play(words []string) (string, error) {
	a, err := parse(words)
	if err != nil {
		return "", err
	}
	s, name := y.s, a.word(0)
	switch words[0] {
	case "process":
		y.s = New(Options{Places: a.int("places"), ClaimCap: a.int("cap"), Shared: a.has("shared")})
	case "queue":
		s.SetLimits(name, Limits{
			Rate: a.float("rate"), Burst: a.int("burst"), Concurrent: a.int("concurrent"), Weight: a.int("weight"),
		}, y.now)
	case "due":
		s.Due(name, y.now.Add(a.duration("in")), y.now)
	case "tick":
		d, err := time.ParseDuration(name)
		y.now = y.now.Add(d)
		return "", err
	case "next", "grants":
		return y.grants(words[0] == "grants"), nil
	case "turns":
		n, err := strconv.Atoi(name)
		return y.turns(n), err
	case "claimed":
		s.Claimed(name, Claim{
			Leased: a.int("leased"), Next: a.instant("next", y.now), Retry: a.instant("retry", y.now), Blocked: a.has("blocked"),
		}, y.now)
	case "done":
		n, err := strconv.Atoi(a.word(1))
		s.Done(name, n, y.now)
		return "", err
	case "returned":
		n, err := strconv.Atoi(a.word(1))
		s.Returned(name, n, y.now)
		return "", err
	case "reset":
		s.Reset(name, y.now)
	case "late":
		s.Late(name)
	case "forget":
		s.Forget(name)
	case "show":
		return y.show(), nil
	default:
		return "", fmt.Errorf("unknown command")
	}
	return "", a.wrong()
}

// grants asks for a grant, or for all, and says when to ask again if there is none.
func (y *story) grants(all bool) string {
	var out strings.Builder
	for {
		g, ok := y.s.Next(y.now)
		if !ok {
			break
		}
		fmt.Fprintf(&out, "%s budget=%d\n", g.Queue, g.Budget)
		if !all {
			return out.String()
		}
	}
	if at, ok := y.s.NextAt(y.now); ok {
		fmt.Fprintf(&out, "none, ask in %v\n", at.Sub(y.now))
	} else {
		out.WriteString("none until something happens\n")
	}
	return out.String()
}

// turns lets queues take turns with one task each.
func (y *story) turns(n int) string {
	var names []string
	for range n {
		g, ok := y.s.Next(y.now)
		if !ok {
			names = append(names, "nobody")
			break
		}
		y.s.Claimed(g.Queue, Claim{Leased: 1, Next: y.now}, y.now)
		y.s.Done(g.Queue, 1, y.now)
		names = append(names, g.Queue)
	}
	return strings.Join(names, " ") + "\n"
}

// show lists the queues by name.
func (y *story) show() string {
	places := []string{idle: "idle", waiting: "waiting", ready: "ready", full: "full", claiming: "claiming", blocked: "blocked"}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(y.s.queues)) {
		q := y.s.queues[name]
		fmt.Fprintf(&out, "%s %s", name, places[q.place])
		if q.place == waiting {
			fmt.Fprintf(&out, " for %v", q.at.Sub(y.now))
		}
		if q.leases > 0 {
			fmt.Fprintf(&out, ", leases %d", q.leases)
		}
		if q.held < q.leases {
			fmt.Fprintf(&out, ", places %d", q.held)
		}
		out.WriteString("\n")
	}
	if out.Len() == 0 {
		return "no queues\n"
	}
	return out.String()
}
