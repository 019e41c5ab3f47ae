package updates

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
)

// at returns an event with a value that a task has emitted.
func at(path, task string, record int64, value any) graph.Event {
	return graph.Event{Path: path, Node: "think", Task: task, Record: record, Body: graph.ValueEmitted{Value: value}}
}

// said returns the end of a reply.
func said(reasoning, text string, calls ...llm.ToolCall) agent.ReplyDone {
	m := llm.Message{Role: llm.RoleAssistant}
	if reasoning != "" {
		m.Parts = append(m.Parts, llm.Reasoning{Text: reasoning})
	}
	if text != "" {
		m.Parts = append(m.Parts, llm.Text{Text: text})
	}
	for _, c := range calls {
		m.Parts = append(m.Parts, c)
	}
	return agent.ReplyDone{Message: m}
}

// format writes updates in short.
func format(list []RunUpdate) string {
	var words []string
	for _, u := range list {
		switch u := u.(type) {
		case TextAdded:
			word := u.Text
			if u.First {
				word = ">" + word
			}
			words = append(words, word)
		case ReasoningAdded:
			words = append(words, "("+u.Text+")")
		case ReplyWithdrawn:
			word := "withdrawn"
			if u.Reasoning {
				word = "(withdrawn)"
			}
			words = append(words, strings.TrimSuffix(word+" "+u.Why, " "))
		case ReplyEnded:
			words = append(words, "end "+u.Reply.ID())
		case CallAdded:
			words = append(words, fmt.Sprintf("added %s %s%s", u.Call.Key(), u.Call.Name, u.Call.Args))
		case CallStarted:
			words = append(words, "started "+u.Call.Key())
		case CallOutput:
			words = append(words, fmt.Sprintf("output %s %q", u.Call.Key(), u.Text))
		case CallEnded:
			words = append(words, "ended "+u.Call.Key())
		case StepStarted:
			words = append(words, "+"+u.Step.Name)
		case StepEnded:
			words = append(words, "-"+u.Step.Name)
		case StateChanged:
			words = append(words, map[bool]string{true: "start", false: "step"}[u.Start])
		case QuestionAsked:
			words = append(words, fmt.Sprintf("asked %s%s at %d", u.Question.Path, u.Question.ID, u.Question.Record))
		case QuestionAnswered:
			words = append(words, "answered "+u.Question.ID)
		case ValueAdded:
			words = append(words, fmt.Sprintf("%T", u.Value))
		}
	}
	return strings.Join(words, ", ")
}

// Sequences of events, and what a receiver gets that keeps what it has, and one that replaces it.
func TestTracker(t *testing.T) {
	text := func(s string) graph.Event { return at("", "0.think.0", 1, agent.TextDelta{Text: s}) }
	thought := func(s string) graph.Event { return at("", "0.think.0", 1, agent.ReasoningDelta{Text: s}) }
	retry := at("", "0.think.0", 1, agent.RetryScheduled{Reason: "cut"})
	end := func(reasoning, s string) graph.Event { return at("", "0.think.0", 2, said(reasoning, s)) }
	start := func(record int64) graph.Event {
		return graph.Event{Record: record, Body: graph.RunStarted{Resumed: record > 1}}
	}
	failed := func(path, node, task string) graph.Event {
		return graph.Event{Path: path, Node: node, Task: task, Body: graph.TaskRetry{Err: errors.New("no")}}
	}
	const id, again = "end 0.think.0/1", "withdrawn cut, the reply starts again"
	sent := agent.MessageTaken{SentMessage: agent.SentMessage{ID: "1", Text: "More."}}
	look := llm.ToolCall{ID: "c", Name: "look", Args: json.RawMessage(`{"x":1}`)}
	for _, c := range []struct {
		name          string
		events        []graph.Event
		keep, replace string // replace is "" if both get the same
	}{
		{"pieces", []graph.Event{thought("h"), thought("m"), text("a"), text("b"), end("hm", "ab")}, "(h), (m), >a, b, " + id, ""},
		{"only the end", []graph.Event{end("hm", "ab")}, "(hm), >ab, " + id, ""},
		{"from the middle", []graph.Event{text("a"), end("hm", "ab")}, ">a, (hm), b, " + id, ""},
		{"a late piece", []graph.Event{end("", "ab"), text("b"), thought("h")}, ">ab, " + id, ""},
		{"no text", []graph.Event{end("", "")}, id, ""},
		{"a message, live and from the journal", []graph.Event{at("", "0.act.0", 1, sent), at("", "0.act.0", 2, sent)}, "agent.MessageTaken", ""},
		{"empty pieces", []graph.Event{text(""), text("a"), text(""), end("", "a")}, ">a, " + id, ""},
		{"the same again", []graph.Event{text("ab"), retry, text("a"), text("bc"), end("", "abc")},
			">ab, agent.RetryScheduled, c, " + id, ">ab, " + again + ", agent.RetryScheduled, >a, bc, " + id},
		{"the same again, no more", []graph.Event{text("ab"), retry, text("ab"), end("", "ab")},
			">ab, agent.RetryScheduled, " + id, ">ab, " + again + ", agent.RetryScheduled, >ab, " + id},
		{"another text", []graph.Event{text("ab"), retry, text("a"), text("x"), text("y"), end("", "axy")},
			">ab, agent.RetryScheduled, " + again + ", >ax, y, " + id, ">ab, " + again + ", agent.RetryScheduled, >a, x, y, " + id},
		{"a shorter text", []graph.Event{text("ab"), retry, text("a"), end("", "a")},
			">ab, agent.RetryScheduled, " + again + ", >a, " + id, ">ab, " + again + ", agent.RetryScheduled, >a, " + id},
		{"twice again", []graph.Event{text("ab"), retry, text("a"), retry, text("abc"), end("", "abc")},
			">ab, agent.RetryScheduled, agent.RetryScheduled, c, " + id,
			">ab, " + again + ", agent.RetryScheduled, >a, " + again + ", agent.RetryScheduled, >abc, " + id},
		{"again before any text", []graph.Event{retry, text("a"), end("", "a")}, "agent.RetryScheduled, >a, " + id, ""},
		{"other reasoning", []graph.Event{thought("h"), retry, thought("x"), end("x", "a")},
			"(h), agent.RetryScheduled, (" + again[:9] + ")" + again[9:] + ", (x), >a, " + id, "(h), " + again + ", agent.RetryScheduled, (x), >a, " + id},
		{"reasoning in another form", []graph.Event{thought("hm"), text("a"), end("Hm.", "a")}, "(hm), >a, " + id, ""},
		{"recorded with another text", []graph.Event{text("ab"), end("", "axyz")}, ">ab, withdrawn, >axyz, " + id, ""},
		{"the task again", []graph.Event{text("ab"), failed("", "think", "0.think.0"), text("x"), end("", "x")},
			">ab, withdrawn the reply starts again, >x, " + id, ""},
		{"the graph above again", []graph.Event{at("sub/", "0.think.0", 1, agent.TextDelta{Text: "ab"}), failed("", "sub", "3.sub.0"), at("sub/", "0.think.0", 1, agent.TextDelta{Text: "ax"})},
			">ab, withdrawn the reply starts again, >ax", ">ab, withdrawn the reply starts again, >ax"},
		{"another task again", []graph.Event{text("ab"), failed("", "sub", "3.sub.0"), text("c"), end("", "abc")}, ">ab, c, " + id, ""},
		{"a team again", []graph.Event{at("team/lead/", "0.think.0", 1, agent.TextDelta{Text: "ab"}), failed("", "team", "1.team.0"), text("x")},
			">ab, withdrawn the reply starts again, >x", ""},
		{"another drive", []graph.Event{start(1), text("ab"), start(5), at("", "0.think.0", 5, agent.TextDelta{Text: "ab"}), at("", "0.think.0", 5, agent.TextDelta{Text: "c"}), at("", "0.think.0", 6, said("", "abc"))},
			"start, >ab, start, c, " + id, "start, >ab, start, withdrawn the reply starts again, >ab, c, " + id},
		{"a start that is read late", []graph.Event{text("a"), start(4), text("b"), at("", "0.think.0", 6, said("", "ab"))}, ">a, start, b, " + id, ""},
		{"replies of one task", []graph.Event{text("a"), end("", "a"), at("", "0.think.0", 2, agent.TextDelta{Text: "b"}), at("", "0.think.0", 3, said("", "b"))},
			">a, " + id + ", >b, end 0.think.0/2", ""},
		{"at the same time", []graph.Event{text("a"), at("", "0.think.1", 1, agent.TextDelta{Text: "x"}), text("b"), end("", "ab"), at("", "0.think.1", 3, said("", "xy"))},
			">a, >x, b, " + id + ", y, end 0.think.1/1", ""},
		{"the lead of a team", []graph.Event{at("team/lead/", "0.think.0", 1, agent.TextDelta{Text: "a"}), end("", "ab"), at("team/lead/", "0.think.0", 1, agent.TextDelta{Text: "b"})},
			">a, b, " + id, ""},
		{"an agent below", []graph.Event{at("team/explore-1", "0.think.0", 1, said("", "a"))}, ">a, end team/explore-1/0.think.0/1", ""},
		{"calls", []graph.Event{at("", "0.think.0", 2, said("", "", look)), at("", "", 3, agent.ToolStarted{ID: "c", Name: "look", Args: look.Args}),
			at("", "", 3, agent.ToolOutput{ID: "c", Name: "look", Text: "x\n"}), at("", "", 3, agent.ToolProgress{ID: "c", Name: "look", Text: "half"}), at("", "", 4, agent.ToolDone{ID: "c", Name: "look"})},
			id + `, added c look{"x":1}, started c, output c "x\n", agent.ToolOutput, output c "half\n", agent.ToolProgress, ended c`, ""},
		{"a call that starts again", []graph.Event{at("", "", 3, agent.ToolStarted{ID: "c", Name: "look"}), at("", "", 5, agent.ToolStarted{ID: "c", Name: "look"})}, "added c look, started c, started c", ""},
		{"calls with one id", []graph.Event{at("a/", "", 3, agent.ToolStarted{ID: "c", Name: "look"}), at("b", "", 3, agent.ToolDone{ID: "c", Name: "see"})},
			"added a/c look, started a/c, added b/c see, ended b/c", ""},
		{"steps", []graph.Event{
			{Node: "work", Task: "1.work.0", Body: graph.TaskStarted{}}, {Node: "work", Task: "1.work.1", Body: graph.TaskStarted{}}, {Node: "work", Task: "1.work.1", Body: graph.TaskStarted{}},
			{Path: "work/", Node: "in", Body: graph.TaskStarted{}}, {Path: "workshop/", Node: "in", Body: graph.TaskStarted{}}, {Body: graph.StepCommitted{Nodes: []string{"work"}}},
			{Path: "workshop/", Node: "in", Body: graph.TaskDone{}}, {Path: "workshop/", Body: graph.StepCommitted{}}},
			"+work, +work#2, +work/in, +workshop/in, -work, -work#2, -work/in, step, -workshop/in", ""},
		{"questions", []graph.Event{{Path: "sub", Record: 7, Body: graph.QuestionAsked{Question: graph.Question{ID: "q"}}}, {Body: graph.QuestionAnswered{ID: "q"}}, {Body: graph.QuestionAnswered{ID: "unknown"}}},
			"asked sub/q at 7, answered q", ""},
		{"other values", []graph.Event{at("", "", 1, "text"), at("", "", 1, nil), {Body: graph.RunEnded{}}}, "string, <nil>", ""},
	} {
		if c.replace == "" {
			c.replace = c.keep
		}
		for replaces, want := range map[bool]string{false: c.keep, true: c.replace} {
			tracker := &Tracker{Calls: Calls{Replies: Replies{Replaces: replaces}}}
			var got []RunUpdate
			for _, ev := range c.events {
				got = append(got, tracker.HandleEvent(ev)...)
			}
			if text := format(got); text != want {
				t.Errorf("%s, replaces %v:\n%s\nwant\n%s", c.name, replaces, text, want)
			}
		}
	}
}

// A receiver puts together what it gets.
type receiver struct {
	tracker   Tracker
	texts     map[string]string // of replies that are not withdrawn, by id
	reasoning map[string]string
	whole     map[string]string
	calls     []string
}

func newReceiver(replaces bool) *receiver {
	return &receiver{tracker: Tracker{Calls: Calls{Replies: Replies{Replaces: replaces}}}, texts: map[string]string{}, reasoning: map[string]string{}, whole: map[string]string{}}
}

func (r *receiver) take(t *testing.T, ev graph.Event) {
	t.Helper()
	for _, u := range r.tracker.HandleEvent(ev) {
		switch u := u.(type) {
		case TextAdded:
			if u.First != (r.texts[u.Reply.ID()] == "") {
				t.Errorf("the piece %q of %s is the first: %v, after %q", u.Text, u.Reply.ID(), u.First, r.texts[u.Reply.ID()])
			}
			r.texts[u.Reply.ID()] += u.Text
		case ReasoningAdded:
			r.reasoning[u.Reply.ID()] += u.Text
		case ReplyWithdrawn:
			if !u.Reasoning {
				delete(r.texts, u.Reply.ID())
			}
			if u.Reasoning || r.tracker.Replaces {
				delete(r.reasoning, u.Reply.ID())
			}
		case ReplyEnded:
			r.whole[u.Reply.ID()] = u.Done.Message.Text()
			if r.texts[u.Reply.ID()] != u.Done.Message.Text() {
				t.Errorf("%s: got %q of %q", u.Reply.ID(), r.texts[u.Reply.ID()], u.Done.Message.Text())
			}
		case CallAdded:
			r.calls = append(r.calls, u.Call.Key())
		}
	}
}

// A play is a run that the bytes of a fuzzer direct. Each event has happened at a record, and some are in the journal.
type play struct {
	events  []graph.Event
	journal []bool
	record  int64
	open    map[string]string // texts of replies, by their tasks
	count   int
}

func (p *play) add(ev graph.Event, journal bool) {
	p.events = append(p.events, ev)
	p.journal = append(p.journal, journal)
}

// direct performs one byte: one of a few tasks writes, fails, ends or asks for a call, or the run starts again.
func (p *play) direct(b byte) {
	tasks := []graph.Event{
		{Node: "think", Task: "0.think.0"}, {Node: "think", Task: "0.think.1"}, {Path: "team/lead/", Node: "think", Task: "2.think.0"}, {Path: "team/explore-1/", Node: "think", Task: "0.think.0"},
	}
	ev := tasks[b%4]
	ev.Record = p.record
	key := ev.Path + ev.Task
	piece := []string{"a", "ab", "b", "\n"}[b>>6]
	switch b >> 2 & 7 {
	case 0, 1, 2:
		p.open[key] += piece
		ev.Body = graph.ValueEmitted{Value: agent.TextDelta{Text: piece}}
		p.add(ev, false)
	case 3:
		ev.Body = graph.ValueEmitted{Value: agent.RetryScheduled{Reason: "cut"}}
		delete(p.open, key)
		p.add(ev, false)
	case 4:
		ev.Body = graph.TaskRetry{}
		delete(p.open, key)
		p.add(ev, false)
	case 5:
		p.record++
		p.add(graph.Event{Record: p.record, Body: graph.RunStarted{Resumed: true}}, true)
		clear(p.open)
	default:
		p.record++
		p.count++
		ev.Record = p.record
		ev.Path = PlainPath(ev.Path) // as a server passes it on
		ev.Body = graph.ValueEmitted{Value: said("", p.open[key]+piece, llm.ToolCall{ID: fmt.Sprint("c", p.count), Name: "look"})}
		delete(p.open, key)
		p.add(ev, true)
	}
}

// checkReceivers compares a receiver that was there from the start with one that comes after a number of events, and one that reads the journal.
func checkReceivers(t *testing.T, script []byte, late int) {
	p := &play{open: map[string]string{}}
	for _, b := range script {
		p.direct(b)
	}
	late = min(max(late, 0), len(p.events))
	for _, replaces := range []bool{false, true} {
		first, second, reader := newReceiver(replaces), newReceiver(replaces), newReceiver(replaces)
		for i, ev := range p.events {
			if i == late {
				for _, r := range first.tracker.OpenReplies() { // as a server tells those who come in the middle
					second.take(t, r.Event(agent.TextDelta{Text: r.Text()}))
				}
			}
			first.take(t, ev)
			if p.journal[i] || i >= late {
				second.take(t, ev)
			}
			if p.journal[i] {
				reader.take(t, ev)
			}
		}
		for _, other := range []*receiver{second, reader} {
			for id, text := range first.whole {
				if other.whole[id] != text || other.texts[id] != text {
					t.Errorf("replaces %v, after %d events: %s is %q, and %q for the first", replaces, late, id, other.texts[id], text)
				}
			}
			if len(other.whole) != len(first.whole) || !slices.Equal(other.calls, first.calls) {
				t.Errorf("replaces %v, after %d events: %d replies and calls %v, and %d and %v for the first", replaces, late, len(other.whole), other.calls, len(first.whole), first.calls)
			}
		}
		for _, r := range second.tracker.OpenReplies() {
			if replaces && second.texts[r.ID()] != r.Text() {
				t.Errorf("after %d events: %s is %q, and the model has written %q", late, r.ID(), second.texts[r.ID()], r.Text())
			}
		}
	}
}

// Who comes late gets the same replies and calls as who was there from the start.
func FuzzReceivers(f *testing.F) {
	f.Add([]byte{0, 0x40, 0x0c, 0x80, 0x18}, 2)
	f.Add([]byte{0, 1, 2, 3, 0x10, 0x40, 0x14, 0x40, 0x1a, 0x1b, 2, 0x1a, 0x18, 0x19}, 5)
	f.Fuzz(func(t *testing.T, script []byte, late int) { checkReceivers(t, script[:min(len(script), 100)], late) })
}

// A call costs what was recorded with it, or what the prices say.
func TestModelCall(t *testing.T) {
	price := func(model string, u llm.Usage) (float64, bool) { return float64(u.Input), model == "known" }
	use := llm.Usage{Input: 3}
	for _, c := range []struct {
		value   any
		ok      bool
		summary bool
		cost    float64
		known   bool
	}{
		{agent.ReplyDone{Model: "known", Usage: use}, true, false, 3, true},
		{agent.ReplyDone{Model: "known", Usage: use, Cost: 5, Priced: true}, true, false, 5, true},
		{agent.ReplyDone{Model: "other", Usage: use}, true, false, 3, false},
		{agent.SummaryDone{Model: "known", Usage: use}, true, true, 3, true},
		{agent.TextDelta{}, false, false, 0, false},
	} {
		call, ok := ModelCallOf(at("", "", 1, c.value))
		cost, known := call.Cost(price)
		if ok != c.ok || call.Summary != c.summary || cost != c.cost || known != c.known {
			t.Errorf("%T: %+v %v, %v %v", c.value, call, ok, cost, known)
		}
	}
}
