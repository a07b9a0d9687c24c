package servers

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/dispatchkit/dispatch/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.Wrap(m)) }
