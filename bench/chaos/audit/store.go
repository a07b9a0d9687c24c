package audit

import (
	"path"
	"slices"
)

// store finds what is wrong with the keys themselves.
func (c *checker) store() {
	if c.rules.Store == nil {
		return
	}
	for _, text := range c.rules.Store.Broken {
		c.report.Broken++
		c.find(VerdictBroken, nil, nil, "%s", text)
	}
	if !c.rules.Drained {
		return
	}
	allowed := slices.Concat(AtRest, c.rules.Leftover)
	for _, key := range c.rules.Store.Keys {
		if !matches(key, allowed) {
			c.report.Leftover++
			c.find(VerdictLeftover, nil, nil, "key %s", key)
		}
	}
}

func matches(key string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, key)
		return ok && err == nil
	})
}
