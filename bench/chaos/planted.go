package main

import (
	"context"
	"io"
	"regexp"
)

func runPlanted(ctx context.Context, names *regexp.Regexp, s settings, out, complaints io.Writer) int {
	return 2
}
