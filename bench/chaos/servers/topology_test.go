package servers

import "testing"

func TestParseMember(t *testing.T) {
	t.Parallel()
	m, err := parseMember("07c3 127.0.0.1:17001@26001,host myself,master - 0 1426238317239 4 connected 0-5460 7000 [93-<-292f]\n")
	if err != nil {
		t.Fatal(err)
	}
	if m.id != "07c3" || m.addr != "127.0.0.1:17001" || !m.is("myself") || !m.is("master") || m.is("slave") || m.epoch != 4 || m.master != "-" {
		t.Errorf("got %+v", m)
	}
	for slot, want := range map[int]bool{0: true, 5460: true, 5461: false, 7000: true, 93: true, 7001: false} {
		if m.owns(slot) != want {
			t.Errorf("owns %d: %v, want %v", slot, !want, want)
		}
	}
	for _, broken := range []string{"", "a b c", "a b c - 0 0 x connected", "a b c - 0 0 1 connected x-1", "a b c - 0 0 1 connected 1-x"} {
		if m, err := parseMember(broken); err == nil {
			t.Errorf("%q: got %+v", broken, m)
		}
	}
}
