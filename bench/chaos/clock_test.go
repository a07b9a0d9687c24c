package main

import (
	"testing"
	"time"
)

func TestStepsMoveTheTimeAndNotDistances(t *testing.T) {
	c := newSkewedClock(0)
	before := c.Now()
	for _, step := range []time.Duration{0, 5 * time.Minute, -10 * time.Minute, time.Second, -365 * 24 * time.Hour} {
		real := time.Now()
		offset := c.Now().Round(0).Sub(real.Round(0)) // by the wall
		c.step(step)
		after := c.Now()
		if moved := after.Round(0).Sub(time.Now().Round(0)) - offset; (moved - step).Abs() > time.Minute/2 {
			t.Errorf("step of %v moved the time by %v", step, moved)
		}
		if d := after.Sub(before); d < 0 || d > time.Minute {
			t.Errorf("step of %v: %v since the beginning", step, d)
		}
		if d := c.Since(before); d < 0 || d > time.Minute {
			t.Errorf("step of %v: Since says %v", step, d)
		}
	}
}

func TestSkewIsThereFromTheStart(t *testing.T) {
	if d := newSkewedClock(-2 * time.Minute).Now().Round(0).Sub(time.Now().Round(0)); (d + 2*time.Minute).Abs() > 30*time.Second {
		t.Errorf("a clock at -2m differs by %v", d)
	}
}
