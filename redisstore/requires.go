package redisstore

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dispatchkit/dispatch/cluster"
)

// formatResources writes resources as scripts read and compare them: "name=amount", by name, with spaces between.
func formatResources(r cluster.Resources) string {
	var b strings.Builder
	for i, name := range slices.Sorted(maps.Keys(r)) {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(name)
		b.WriteByte('=')
		b.WriteString(strconv.FormatInt(r[name], 10))
	}
	return b.String()
}

// parseResources reads what formatResources wrote; nil when there are none.
func parseResources(text string) cluster.Resources {
	var r cluster.Resources
	for word := range strings.FieldsSeq(text) {
		name, amount, _ := strings.Cut(word, "=")
		n, err := strconv.ParseInt(amount, 10, 64)
		if err != nil {
			continue
		}
		if r == nil {
			r = make(cluster.Resources)
		}
		r[name] = n
	}
	return r
}

// freeArg is a worker's free capacity for claim.lua: "-" when it states none.
func freeArg(r cluster.Resources) string {
	if r == nil {
		return "-"
	}
	return formatResources(r)
}
