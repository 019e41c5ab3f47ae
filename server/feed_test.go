package server

import (
	"errors"
	"path/filepath"
	"slices"
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
	piece.Body = graph.ValueEmitted{Value: agent.TextDelta{Text: "Hello."}}
	f.mu.Lock()
	f.replies.HandleEvent(piece)
	f.mu.Unlock()
	if texts, replies, _ := count(); texts != 0 || replies != 1 {
		t.Errorf("%d texts and %d replies, want 0 and 1", texts, replies)
	}
}

// A drive may report the pieces of a reply after a subscriber has read the whole reply in the journal: they are not passed on.
func TestLatePiecesAreNotPassedOn(t *testing.T) {
	w := newWorld(t)
	agents := filepath.Join(w.home, ".config", "raddle", "agents", "talk")
	w.write(filepath.Join(agents, "graph.yaml"), `
name: talk
start: talk
nodes:
  talk: {type: llm, prompt: Hello, model: "script:transcript.yaml", state_updates: {said: "{{output}}"}, next: ask}
  ask: {type: input, question: Who?, state_updates: {who: "{{input}}"}, next: done}
  done: {type: end, output: "{{said}}"}
`)
	w.write(filepath.Join(agents, "transcript.yaml"), "- text: Hello.\n")
	s := w.serve(Options{})
	run := start(t, s, "talk")
	wait(t, s, run, "waiting")
	sub := joinFeed(t, s, run)
	defer sub.leave()
	var reply graph.Event
	batch, _, _ := sub.takeQueue()
	for _, ev := range batch {
		if isWholeReply(ev) {
			reply = ev.Event
		}
	}
	if reply.Record == 0 {
		t.Fatal("there is no reply")
	}
	reply.Record--
	reply.Body = graph.ValueEmitted{Value: agent.TextDelta{Text: "Hello."}}
	sub.feed.handleEvent(reply)
	if batch, _, _ := sub.takeQueue(); len(batch) > 0 {
		t.Errorf("%d events follow the reply, the first is %+v", len(batch), batch[0].Body)
	}
}

// The lead of a team has another path in the events of a drive than in the journal. What it writes is known to be late all the same, and a task that
// is tried again writes its reply again.
func TestRepliesOfALeadAndOfATaskThatIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	agents := filepath.Join(w.home, ".config", "raddle", "agents")
	w.write(filepath.Join(agents, "lead", "config.yaml"), "name: lead\nmodel: script:transcript.yaml\ncan_spawn_agents: true\nspawnable_agents: [worker]\n")
	w.write(filepath.Join(agents, "lead", "transcript.yaml"), "- tool_calls: [{id: c1, name: user__ask, args: {question: Which?, options: [red, blue]}}]\n- text: Hello.\n")
	w.write(filepath.Join(agents, "worker", "config.yaml"), "name: worker\nmodel: script:transcript.yaml\n")
	w.write(filepath.Join(agents, "worker", "transcript.yaml"), "- text: Done.\n")
	s := w.serve(Options{})
	run := start(t, s, "lead")
	wait(t, s, run, "waiting")
	sub := joinFeed(t, s, run)
	defer sub.leave()
	var reply graph.Event
	batch, _, _ := sub.takeQueue()
	for _, ev := range batch {
		if isWholeReply(ev) {
			reply = ev.Event
		}
	}
	if reply.Record == 0 || reply.Path != "" {
		t.Fatalf("the reply is %+v", reply)
	}
	piece := func(record int64, text string) graph.Event {
		ev := reply
		ev.Path, ev.Record, ev.Body = "team/lead/", record, graph.ValueEmitted{Value: agent.TextDelta{Text: text}}
		return ev
	}
	sub.feed.handleEvent(piece(reply.Record-1, "late"))
	if batch, _, _ := sub.takeQueue(); len(batch) > 0 {
		t.Errorf("%d events follow the reply, the first is %+v", len(batch), batch[0].Body)
	}
	retry := piece(reply.Record, "")
	retry.Body = graph.TaskRetry{Attempt: 1, Err: errors.New("no")}
	for _, ev := range []graph.Event{piece(reply.Record, "half"), retry, piece(reply.Record, "new")} {
		sub.feed.handleEvent(ev)
	}
	late := joinFeed(t, s, run)
	defer late.leave()
	var texts []string
	batch, _, _ = late.takeQueue()
	for _, ev := range batch {
		if emitted, _ := ev.Body.(graph.ValueEmitted); emitted.Value != nil {
			if v, ok := emitted.Value.(agent.TextDelta); ok {
				texts = append(texts, v.Text)
			}
		}
	}
	if !slices.Equal(texts, []string{"new"}) {
		t.Errorf("who comes late gets %q", texts)
	}
}

// isWholeReply reports whether an event says that a reply is complete.
func isWholeReply(ev *Event) bool {
	emitted, _ := ev.Body.(graph.ValueEmitted)
	_, ok := emitted.Value.(agent.ReplyDone)
	return ok
}

// joinFeed returns a subscription that has read the journal and is a part of the feed of its run. The caller must call leave.
func joinFeed(t *testing.T, s *Service, run string) *Subscription {
	t.Helper()
	sub, err := s.Subscribe(t.Context(), run, SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sub.feed = s.feeds.acquire(s, run)
	for joined := false; !joined; {
		more, err := sub.readJournal(t.Context(), false)
		if err == nil && !more {
			joined, err = sub.feed.join(t.Context(), sub)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return sub
}

// A client that waits for a run sees its end, and never a run that seems to have crashed because it ended while it was read.
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
