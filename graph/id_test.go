package graph

import (
	"testing"
	"time"
)

// A derived id follows from its time and its texts, and sorts like others of that time.
func TestDeriveID(t *testing.T) {
	at := time.Unix(1_790_000_000, 0)
	one := DeriveID(at, "a/b", "k")
	if other := DeriveID(at, "a/b", "k"); one != other || len(one) != len(NewID(at)) {
		t.Errorf("%s, then %s", one, other)
	}
	for _, other := range []string{DeriveID(at, "a/c", "k"), DeriveID(at, "a/b", "l"), DeriveID(at, "a", "b/k"), NewID(at)} {
		if other == one || other[:9] != one[:9] {
			t.Errorf("another id is %s, and one is %s", other, one)
		}
	}
	if later := DeriveID(at.Add(time.Millisecond), "a/b", "k"); later <= one {
		t.Errorf("%s comes before %s", later, one)
	}
}

// The ids of remote runs are in journals: they stay as they are.
func TestRemoteIDStays(t *testing.T) {
	if got := remoteID("1m8mnf1q3xv9hbdnnh8z", "ask#2"); got != "1m8mnf1q3ft7axvttt8" {
		t.Errorf("%s", got)
	}
}
