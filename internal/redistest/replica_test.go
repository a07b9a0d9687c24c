package redistest

import "testing"

func TestReplica(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func() *Server{
		"single": func() *Server { return Start(t) },
		"strict": func() *Server { return StartStrictCluster(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start()
			replica := StartReplica(t, s)
			if role := infoField(do(t, replica, "INFO", "replication"), "role"); role != "slave" {
				t.Errorf("the replica is a %s", role)
			}
			do(t, s, "SET", "k", "1")
			replica.Kill()
			requirePong(t, s)
		})
	}
}
