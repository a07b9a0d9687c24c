package e2e

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// scriptStats tells how long a server was held by each command and each script, from its slow log. Commands inside scripts
// stand there, too: what is quicker than most scripts is left out, so that the log has room and costs little.
type scriptStats struct{ raw redis.UniversalClient }

const (
	slowLogFrom   = 50 // µs
	slowLogLength = 50_000
)

// reset begins to count.
func (s *scriptStats) reset(t testing.TB) {
	t.Helper()
	ctx := t.Context()
	for _, err := range []error{
		s.raw.ConfigSet(ctx, "slowlog-log-slower-than", strconv.Itoa(slowLogFrom)).Err(),
		s.raw.ConfigSet(ctx, "slowlog-max-len", strconv.Itoa(slowLogLength)).Err(),
		s.raw.ConfigResetStat(ctx).Err(),
		s.raw.Do(ctx, "SLOWLOG", "RESET").Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

var perCall = regexp.MustCompile(`cmdstat_(evalsha|zscan):calls=(\d+),.*usec_per_call=([\d.]+)`)

// log writes what the server says of the commands of listings and scripts, and of each script that ran.
func (s *scriptStats) log(t testing.TB) {
	t.Helper()
	info, err := s.raw.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range perCall.FindAllStringSubmatch(info, -1) {
		t.Logf("    %-24s %6s calls, %s µs per call", m[1], m[2], m[3])
	}
	took := s.durations(t)
	for _, name := range slices.SortedFunc(maps.Keys(took), func(a, b string) int { return cmp.Compare(sum(took[b]), sum(took[a])) }) {
		all := took[name]
		slices.Sort(all)
		t.Logf("    %-24s %6d calls from 50 µs, mean %5d µs, median %5d, p99 %5d, slowest %5d", name, len(all),
			(sum(all) / time.Duration(len(all))).Microseconds(), all[len(all)/2].Microseconds(),
			all[(len(all)-1)*99/100].Microseconds(), all[len(all)-1].Microseconds())
	}
}

// durations are those since the reset, of slowLogFrom or more, by the name of the script or the command.
func (s *scriptStats) durations(t testing.TB) map[string][]time.Duration {
	t.Helper()
	entries, err := s.raw.SlowLogGet(t.Context(), slowLogLength).Result()
	if err != nil {
		t.Fatal(err)
	}
	took := map[string][]time.Duration{}
	for _, e := range entries {
		name := strings.ToLower(e.Args[0])
		switch name {
		case "evalsha":
			name = cmp.Or(scriptNames()[e.Args[1]], e.Args[1])
		case "zscan":
		default:
			continue
		}
		took[name] = append(took[name], e.Duration)
	}
	return took
}

func sum(all []time.Duration) (total time.Duration) {
	for _, d := range all {
		total += d
	}
	return total
}

// scriptNames are the names of the store's scripts by the hash under which the server knows them.
var scriptNames = sync.OnceValue(func() map[string]string {
	const dir = "../../redisstore/lua/"
	text := func(name string) string {
		b, _ := os.ReadFile(dir + name + ".lua")
		return string(b)
	}
	names := map[string]string{}
	files, _ := filepath.Glob(dir + "*.lua")
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".lua")
		for _, libraries := range []string{"", "lib_limits lib_throttle", "lib_throttle", "lib_entry"} {
			source := text("lib_clock") + text("lib_record")
			for _, library := range strings.Fields(libraries) {
				source += text(library)
			}
			hash := sha1.Sum([]byte(source + text(name)))
			names[hex.EncodeToString(hash[:])] = name
		}
	}
	return names
})
