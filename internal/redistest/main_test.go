package redistest

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv(orphanEnv) != "" {
		orphan()
	}
	os.Exit(Wrap(m).Run())
}

// orphanEnv makes the test binary start a server, print its address, and wait to be killed.
const orphanEnv = "REDISTEST_ORPHAN"

func orphan() {
	s, err := Launch(Config{})
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString(s.Addr() + "\n")
	select {}
}
