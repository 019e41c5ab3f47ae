package team_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/llm"
	"raddle.dev/team"
	"raddle.dev/tool"
)

// four is a lead that starts two agents itself and two by its queue, one behind the
// other; one of them asks a person, one writes to the lead, and one starts an agent
// of its own.
func four(s *stage) team.Config {
	collects := func(v view, id string) llm.Message {
		return calls(v, "agent__collect", fmt.Sprintf(`{"id":%q}`, id))
	}
	leads := func(_ context.Context, v view) llm.Message {
		switch v.round {
		case 0:
			return calls(v, append(append(spawnCall("a"), spawnCall("asks")...),
				"agent__task_create", `{"subject":"first","agent":"explore","prompt":"c"}`,
				"agent__task_create", `{"subject":"then","agent":"explore","prompt":"mail","blocked_by":["task_1"]}`)...)
		case 1, 2:
			return collects(v, ids(v)[v.round-1])
		case 3, 5:
			return calls(v, "agent__task_list", `{}`)
		case 4, 6:
			id := v.last()[strings.LastIndex(v.last(), `"agent_explore_`)+1:]
			if v.round == 4 {
				id = v.last()[strings.Index(v.last(), `"agent_explore_`)+1:]
			}
			return collects(v, id[:strings.IndexByte(id, '"')])
		case 7:
			return calls(v, "agent__check_inbox", `{}`)
		}
		var said []string
		for _, r := range v.results {
			r, _, _ = strings.Cut(r, `,"timestamp"`)
			if at := max(strings.Index(r, `"output"`), strings.Index(r, `"payload"`)); at >= 0 {
				said = append(said, r[at:])
			}
		}
		return words(strings.Join(said, "; "))
	}
	explores := func(_ context.Context, v view) llm.Message {
		switch {
		case v.round == 0 && v.asked == "asks":
			return calls(v, "user__input", `{"question":"Which?"}`)
		case v.round == 0 && v.asked == "mail":
			return calls(v, "agent__send_message", `{"to":"parent","message":"hello"}`)
		case v.round == 0:
			return calls(v, "work", fmt.Sprintf(`{"for":%q}`, v.asked), "work", fmt.Sprintf(`{"more":%q}`, v.asked))
		case v.round == 1 && v.asked == "a":
			return calls(v, spawnCall("below a")...)
		case v.round == 2 && v.asked == "a":
			return collects(v, ids(v)[0])
		}
		return words(v.asked + " is done: " + v.last())
	}
	c := pair(s, leads, explores, team.Spawn{Reminders: 1})
	m := c.Agents["explore"]
	m.Spawn, m.Agent.Tools = &team.Spawn{}, append([]tool.Tool{s.work()}, agent.UserTools(false)...)
	c.Agents["explore"] = m
	return c
}

// finish resumes a team until it is over, answers what is asked, and lists the
// doubts.
func finish(t *testing.T, r *graph.Runner) (res graph.Result, doubts int, err error) {
	t.Helper()
	return toTheEnd(t.Context(), r)
}

func toTheEnd(ctx context.Context, r *graph.Runner) (res graph.Result, doubts int, err error) {
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t"})
	if errors.Is(err, graph.ErrNoThread) {
		res, err = r.Invoke(ctx, graph.Input{Thread: "t", Run: "run", Set: agent.Turn("Go.")})
	}
	for range 30 {
		if err != nil || res.Status != graph.Waiting {
			return res, doubts, err
		}
		in := graph.Resume{Thread: "t"}
		for _, q := range res.Questions {
			a := graph.Answer{ID: q.ID, Value: "this one"}
			if q.Kind == agent.KindDoubt {
				a.Value = "retry"
				doubts++
			}
			in.Answers = append(in.Answers, a)
		}
		res, err = r.InvokeResume(ctx, in)
	}
	return res, doubts, errors.New("it never ends")
}

func (s *stage) total() (requests, works int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.requests {
		requests += n
	}
	for _, n := range s.calls {
		works += n
	}
	return
}

// A team is broken after each of its records: no reply that is recorded is asked
// for again, no work is done again without an answer, no agent that has
// finished runs again, and all ends as if nothing had happened.
func TestCrashAfterEveryRecord(t *testing.T) {
	calm := newStage()
	count := &graphtest.Crash{Store: graph.NewMemory(), Limit: -1}
	want, _, err := finish(t, &graph.Runner{Graph: compile(t, four(calm)), Store: count})
	if err != nil || want.Status != graph.Done {
		t.Fatal(want.Status, err)
	}
	all, works := calm.total()
	if works != 6 || !strings.Contains(agent.LastResponse(want.State), "this one") || !strings.Contains(agent.LastResponse(want.State), "hello") {
		t.Fatalf("%d works, %q", works, agent.LastResponse(want.State))
	}
	for limit := range count.RecordCount() - 10 {
		s := newStage()
		store := &graphtest.Crash{Store: graph.NewMemory(), Limit: limit, Lost: limit%2 == 1}
		if _, _, err := finish(t, &graph.Runner{Graph: compile(t, four(s)), Store: store}); err != nil && !errors.Is(err, graphtest.ErrCrash) {
			t.Fatalf("crash after %d records: %v", limit, err)
		}
		recorded, worked := 0, 0
		for e, err := range graph.History(t.Context(), store.Store, "t") {
			if err != nil {
				t.Fatal(err)
			}
			what := strings.Split(e.ID, "\x00")
			if e.Kind == graph.KindEffect && what[1] == "model" {
				recorded++
			} else if e.Kind == graph.KindEffect && what[1] == "tool work" {
				worked++
			}
		}
		before, did := s.total()
		got, doubts, err := finish(t, &graph.Runner{Graph: compile(t, four(s)), Store: store.Store})
		if err != nil || got.Status != graph.Done {
			t.Fatalf("crash after %d records: %v, %v", limit, got.Status, err)
		}
		if a, b := agent.LastResponse(want.State), agent.LastResponse(got.State); a != b {
			t.Fatalf("crash after %d records:\n%s, want\n%s", limit, b, a)
		}
		after, done := s.total()
		if recorded+after-before != all {
			t.Errorf("crash after %d records: %d replies were recorded and %d asked for later, want %d together", limit, recorded, after-before, all)
		}
		if again := done - works; again > doubts || worked+done-did < works {
			t.Errorf("crash after %d records: %d works of %d, %d before the crash, %d recorded, %d doubts", limit, done, works, did, worked, doubts)
		}
		if a, b := agent.Spent.Get(want.State), agent.Spent.Get(got.State); a != b {
			t.Errorf("crash after %d records: spent %+v, want %+v", limit, b, a)
		}
	}
}

// A run with an escalation is broken after each of its records: the question is
// asked once, and its answer arrives once.
func TestCrashInAnEscalation(t *testing.T) {
	build := func(s *stage) *graph.Graph {
		return compile(t, escalateTool(s, one([]string{"a"}, func(_ context.Context, v view) llm.Message {
			switch v.round {
			case 1, 3:
				return calls(v, collectCall(ids(v)[0])...)
			case 2:
				_, id, _ := strings.Cut(v.last(), `"escalation_id":"`)
				id, _, _ = strings.Cut(id, `"`)
				return calls(v, "agent__reply_escalation", fmt.Sprintf(`{"escalation_id":%q,"reply":"blue"}`, id))
			}
			return words(strings.Join(v.results[1:], ""))
		}), 0))
	}
	count := &graphtest.Crash{Store: graph.NewMemory(), Limit: -1}
	want, _, err := finish(t, &graph.Runner{Graph: build(newStage()), Store: count})
	if err != nil || !strings.Contains(agent.LastResponse(want.State), `told: {\"answer\":\"blue\"}`) {
		t.Fatal(err, agent.LastResponse(want.State))
	}
	for limit := range count.RecordCount() - 3 {
		s := newStage()
		store := &graphtest.Crash{Store: graph.NewMemory(), Limit: limit, Lost: limit%2 == 0}
		if _, _, err := finish(t, &graph.Runner{Graph: build(s), Store: store}); err != nil && !errors.Is(err, graphtest.ErrCrash) {
			t.Fatalf("crash after %d records: %v", limit, err)
		}
		got, _, err := finish(t, &graph.Runner{Graph: build(s), Store: store.Store})
		if a, b := agent.LastResponse(want.State), agent.LastResponse(got.State); err != nil || a != b {
			t.Fatalf("crash after %d records: %v\n%s, want\n%s", limit, err, b, a)
		}
	}
}

// Two agents ask while the lead collects: both questions are listed, and each gets
// its own answer, in any order.
func TestQuestionsWhileTheLeadCollects(t *testing.T) {
	s := newStage()
	leads := func(_ context.Context, v view) llm.Message {
		switch v.round {
		case 0:
			return calls(v, append(spawnCall("x"), spawnCall("y")...)...)
		case 1:
			return calls(v, "agent__collect", fmt.Sprintf(`{"id":%q}`, ids(v)[0]), "agent__collect", fmt.Sprintf(`{"id":%q}`, ids(v)[1]))
		}
		return words(v.results[2] + v.results[3])
	}
	c := pair(s, leads, func(_ context.Context, v view) llm.Message {
		if v.round == 0 {
			return calls(v, "user__input", fmt.Sprintf(`{"question":"What is %s?"}`, v.asked))
		}
		return words(v.asked + " is " + v.field("answer"))
	}, team.Spawn{})
	m := c.Agents["explore"]
	m.Agent.Tools = agent.UserTools(false)
	c.Agents["explore"] = m
	r := &graph.Runner{Graph: compile(t, c), Store: graph.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
	if err != nil || res.Status != graph.Waiting || len(res.Questions) != 2 {
		t.Fatalf("%v, %v, %v", res.Status, res.Questions, err)
	}
	slices.SortFunc(res.Questions, func(a, b graph.Question) int { return strings.Compare(b.Prompt, a.Prompt) })
	for i, q := range res.Questions {
		if !strings.HasPrefix(q.ID, "team/agent_explore_") || !strings.HasSuffix(q.ID, "/act") {
			t.Errorf("the question's id is %s", q.ID)
		}
		value := q.Prompt[len("What is "):len(q.Prompt)-1] + "!"
		if res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: q.ID, Value: value}}}); err != nil {
			t.Fatal(err)
		}
		if i == 0 && (res.Status != graph.Waiting || len(res.Questions) != 1) {
			t.Errorf("after one answer: %v, %v", res.Status, res.Questions)
		}
	}
	if got := agent.LastResponse(res.State); res.Status != graph.Done || !strings.Contains(got, "x is x!") || !strings.Contains(got, "y is y!") {
		t.Errorf("%v, %s", res.Status, got)
	}
	if n, _ := s.total(); n != 3+2*2 {
		t.Errorf("%d requests, want 7: %v", n, s.requests)
	}
}

// A run that is cancelled continues with the agents inside their loops: what they
// have done is not done again, and no agent counts as failed.
func TestCancelledRunGoesOn(t *testing.T) {
	s := newStage()
	ctx, cancel := context.WithCancel(t.Context())
	first := true
	c := pair(s, one([]string{"a", "b"}, func(_ context.Context, v view) llm.Message {
		if v.round == 1 {
			return calls(v, append(collectCall(ids(v)[0]), collectCall(ids(v)[1])...)...)
		}
		return words(v.results[2] + v.results[3])
	}), func(ctx context.Context, v view) llm.Message {
		switch {
		case v.round == 0:
			return calls(v, "work", fmt.Sprintf(`{"for":%q}`, v.asked))
		case v.asked == "b" && first:
			first = false
			cancel()
			<-ctx.Done()
		}
		return words(v.asked + " is done")
	}, team.Spawn{})
	r := &graph.Runner{Graph: compile(t, c), Store: graph.NewMemory()}
	res, err := r.Invoke(ctx, graph.Input{Thread: "t", Set: agent.Turn("Go.")})
	if res.Status != graph.Canceled || err == nil {
		t.Fatalf("%v, %v", res.Status, err)
	}
	res, doubts, err := finish(t, r)
	if got := agent.LastResponse(res.State); err != nil || res.Status != graph.Done || strings.Count(got, `"status":"completed"`) != 2 {
		t.Fatalf("%v, %v, %s", res.Status, err, got)
	}
	if _, works := s.total(); works > 2+doubts || s.calls[`{"for":"b"}`] != 1 {
		t.Errorf("works: %v, with %d doubts", s.calls, doubts)
	}
}

// After an edit the turn starts again: nothing of the agents before is left.
func TestEditBeginsTheTurnAnew(t *testing.T) {
	s := newStage()
	c := pair(s, one([]string{"a"}, func(_ context.Context, v view) llm.Message {
		if v.round == 1 {
			return calls(v, collectCall(ids(v)[0])...)
		}
		return words(v.last())
	}), func(_ context.Context, v view) llm.Message {
		if v.round == 0 {
			return calls(v, "user__input", `{"question":"Which?"}`)
		}
		return words("it is " + v.field("answer"))
	}, team.Spawn{})
	m := c.Agents["explore"]
	m.Agent.Tools = agent.UserTools(false)
	c.Agents["explore"] = m
	r := &graph.Runner{Graph: compile(t, c), Store: graph.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
	if err != nil || res.Status != graph.Waiting {
		t.Fatal(res.Status, err)
	}
	old := res.Questions[0].ID
	if _, err := r.Edit(t.Context(), "t", agent.AppendMessages(llm.User("Rather this."))); err != nil {
		t.Fatal(err)
	}
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
	if err != nil || len(res.Questions) != 1 || res.Questions[0].ID == old {
		t.Fatalf("%v, %v, the question before was %s", res.Questions, err, old)
	}
	res, _, err = finish(t, r)
	if err != nil || res.Status != graph.Done || !strings.Contains(agent.LastResponse(res.State), "it is this one") {
		t.Errorf("%v, %v, %q", res.Status, err, agent.LastResponse(res.State))
	}
}

// Answers given ahead reach agents, and the team continues in the same drive.
func TestAnswersAhead(t *testing.T) {
	s := newStage()
	r := &graph.Runner{Graph: compile(t, four(s)), Store: graph.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Run: "run", Set: agent.Turn("Go."), Ahead: []graph.Answer{{Value: "this one"}}})
	if err != nil || res.Status != graph.Done || !strings.Contains(agent.LastResponse(res.State), "this one") {
		t.Errorf("%v, %v, %q", res.Status, err, agent.LastResponse(res.State))
	}
	for what, n := range s.requests {
		if n != 1 {
			t.Errorf("%s was requested %d times", what, n)
		}
	}
}
