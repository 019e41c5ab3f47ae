package app

import (
	"slices"
	"testing"

	"raddle.dev/agent"
)

// A turn that has nothing left to take up accepts nothing more, also if what it has taken up before, or in an earlier
// drive, is still in the list: what is accepted is not lost.
func TestSentMessages(t *testing.T) {
	said := map[string]bool{"old": true}
	isTaken := func(id string) bool { return said[id] }
	var s sentMessages
	accept := func(id string, want bool) {
		t.Helper()
		if got := s.acceptMessage(agent.SentMessage{ID: id, Text: id}); got != want {
			t.Errorf("the message %s is accepted: %v, want %v", id, got, want)
		}
	}
	look := func(last bool, want ...string) {
		t.Helper()
		var ids []string
		for _, m := range s.waiting(isTaken, last) {
			ids = append(ids, m.ID)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("the turn gets %v, want %v", ids, want)
		}
	}
	accept("old", true) // of an earlier drive, as a letter that was not removed
	accept("a", true)
	look(false, "a")
	accept("b", true)
	if s.dropMessage("a") {
		t.Error("a message is taken back that the turn has")
	}
	if !s.dropMessage("b") || s.dropMessage("b") {
		t.Error("a message that the turn does not have is taken back once")
	}
	look(true, "a") // the step was not saved: the turn gets it again, and continues
	accept("c", true)
	said["a"] = true
	look(true, "c")
	accept("c", true) // the same letter again
	said["c"] = true
	look(true)
	accept("d", false)
	look(false) // something else has continued the turn
	accept("d", true)
	s.close()
	accept("e", false)
}
