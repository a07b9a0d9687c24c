//go:build race

package cron

// The race detector makes the oracle ten times slower and has little to find in arithmetic, so it gets fewer zones.
func init() { underRace = true }
