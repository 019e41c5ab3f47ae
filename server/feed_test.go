package server

import (
	"path/filepath"
	"sync"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
)

// A subscriber that comes after a reply was recorded, and before its drive reports it, sees the reply once.
func TestReplyIsSeenOnce(t *testing.T) {
	w := newWorld(t)
	agents := filepath.Join(w.home, ".config", "raddle", "agents", "talk")
	w.write(filepath.Join(agents, "config.yaml"), "name: talk\nmodel: script:transcript.yaml\n")
	w.write(filepath.Join(agents, "transcript.yaml"), "- text: Hello.\n")
	s := w.serve(Options{})
	run := start(t, s, "talk")
	wait(t, s, run, "done")
	count := func() (texts, replies int, reply Event) {
		events, err := read(t.Context(), t, s, run, SubscribeOptions{})()
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range events {
			emitted, _ := ev.Body.(graph.ValueEmitted)
			switch emitted.Value.(type) {
			case agent.TextDelta:
				texts++
			case agent.ReplyDone:
				replies, reply = replies+1, ev
			}
		}
		return texts, replies, reply
	}
	_, _, reply := count()
	f := s.feeds.acquire(s, run) // as the drive has it
	defer s.feeds.release(f)
	piece := reply.Event
	piece.Record--
	f.mu.Lock()
	f.keepText(piece.Path+piece.Task, piece, agent.TextDelta{Text: "Hello."})
	f.mu.Unlock()
	if texts, replies, _ := count(); texts != 0 || replies != 1 {
		t.Errorf("%d texts and %d replies, want 0 and 1", texts, replies)
	}
}

// Who waits for a run sees its end, and never a run that seems to have crashed because it ended while it was read.
func TestWaitSeesTheEnd(t *testing.T) {
	w := newWorld(t)
	agents := filepath.Join(w.home, ".config", "raddle", "agents", "talk")
	w.write(filepath.Join(agents, "config.yaml"), "name: talk\nmodel: script:transcript.yaml\n")
	w.write(filepath.Join(agents, "transcript.yaml"), "- text: Hello.\n")
	s := w.serve(Options{})
	var all sync.WaitGroup
	for range 100 {
		run := start(t, s, "talk")
		all.Go(func() {
			for range 2 {
				if st, err := s.WaitRun(t.Context(), run); err != nil || st.Status != "done" {
					t.Errorf("%+v %v", st, err)
				}
			}
			if list, err := s.process.Runs.ListRuns(t.Context(), run); err != nil || len(list) != 1 || list[0].Status != "done" {
				t.Errorf("%+v %v", list, err)
			}
		})
	}
	all.Wait()
}
