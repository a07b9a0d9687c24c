package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// commandStats is what a server has executed since its statistics were reset. Commands that scripts call count, too,
// each for itself and its time also for its script.
type commandStats struct {
	total  int64 // total_commands_processed
	byName map[string]commandStat
}

type commandStat struct{ calls, usec int64 }

func (c commandStat) mean() float64 { return float64(c.usec) / float64(c.calls) }

func readCommandStats(ctx context.Context, client *redis.Client) (commandStats, error) {
	fields, err := info(ctx, client, "all") // one command for both parts
	if err != nil {
		return commandStats{}, err
	}
	s := commandStats{byName: make(map[string]commandStat)}
	if s.total, err = strconv.ParseInt(fields["total_commands_processed"], 10, 64); err != nil {
		return commandStats{}, err
	}
	for field, value := range fields {
		name, ok := strings.CutPrefix(field, "cmdstat_")
		if !ok {
			continue
		}
		var c commandStat
		if _, err := fmt.Sscanf(value, "calls=%d,usec=%d,", &c.calls, &c.usec); err != nil {
			return commandStats{}, fmt.Errorf("INFO: %s:%s: %w", field, value, err)
		}
		s.byName[name] = c
	}
	return s, nil
}

// since is what was executed after an earlier reading, its INFO left out.
func (s commandStats) since(before commandStats) commandStats {
	d := commandStats{total: s.total - before.total - 1, byName: make(map[string]commandStat)}
	for name, c := range s.byName {
		c.calls, c.usec = c.calls-before.byName[name].calls, c.usec-before.byName[name].usec
		if c.calls > 0 && name != "info" {
			d.byName[name] = c
		}
	}
	return d
}

// per lists the commands, the most frequent first, each divided by a time.
func (s commandStats) per(seconds float64) string {
	names := slices.SortedFunc(maps.Keys(s.byName), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.byName[b].calls, s.byName[a].calls), cmp.Compare(a, b))
	})
	var list []string
	for _, name := range names {
		list = append(list, fmt.Sprintf("%s %.2f", name, float64(s.byName[name].calls)/seconds))
	}
	return strings.Join(list, ", ")
}
