package main

import (
	"context"
	"io"
)

func writePlots(context.Context, *env, string, io.Writer) error { return nil }
