package team_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/store/sqlite"
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
	if errors.Is(err, journal.ErrNoThread) {
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
	count := &graphtest.Crash{Store: journal.NewMemory(), Limit: -1}
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
		store := &graphtest.Crash{Store: journal.NewMemory(), Limit: limit, Lost: limit%2 == 1}
		if _, _, err := finish(t, &graph.Runner{Graph: compile(t, four(s)), Store: store}); err != nil && !errors.Is(err, graphtest.ErrCrash) {
			t.Fatalf("crash after %d records: %v", limit, err)
		}
		recorded, worked := 0, 0
		for e, err := range history.Entries(t.Context(), store.Store, "t") {
			if err != nil {
				t.Fatal(err)
			}
			what := strings.Split(e.ID, "\x00")
			if e.Kind == journal.KindEffect && what[1] == "model" {
				recorded++
			} else if e.Kind == journal.KindEffect && what[1] == "tool work" {
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
	count := &graphtest.Crash{Store: journal.NewMemory(), Limit: -1}
	want, _, err := finish(t, &graph.Runner{Graph: build(newStage()), Store: count})
	if err != nil || !strings.Contains(agent.LastResponse(want.State), `told: {\"answer\":\"blue\"}`) {
		t.Fatal(err, agent.LastResponse(want.State))
	}
	for limit := range count.RecordCount() - 3 {
		s := newStage()
		store := &graphtest.Crash{Store: journal.NewMemory(), Limit: limit, Lost: limit%2 == 0}
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
	r := &graph.Runner{Graph: compile(t, c), Store: journal.NewMemory()}
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
func TestCancelledRunContinues(t *testing.T) {
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
	r := &graph.Runner{Graph: compile(t, c), Store: journal.NewMemory()}
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
func TestEditRestartsTheTurn(t *testing.T) {
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
	r := &graph.Runner{Graph: compile(t, c), Store: journal.NewMemory()}
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
	r := &graph.Runner{Graph: compile(t, four(s)), Store: journal.NewMemory()}
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

// A gate is open once and for all.
type gate struct {
	opened chan struct{}
	open   func()
}

func newGate() gate {
	c := make(chan struct{})
	return gate{c, sync.OnceFunc(func() { close(c) })}
}

// crowd is a lead that spawns six agents where two may run. It cancels the last one,
// which waits for a place, collects the first two together, and then whichever is done
// next until it has collected all.
//
// The first two work until all are spawned, which opens the gate.
func crowd(s *stage, spawned gate) team.Config {
	leads := func(_ context.Context, v view) llm.Message {
		all := ids(v)
		if v.round == 1 {
			spawned.open()
		}
		switch {
		case v.round == 0:
			var list []string
			for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
				list = append(list, spawnCall(name)...)
			}
			return calls(v, list...)
		case v.round == 1:
			return calls(v, "agent__cancel", fmt.Sprintf(`{"id":%q}`, all[5]), "agent__collect", fmt.Sprintf(`{"ids":[%q,%q,"agent_explore_ffffffff"]}`, all[0], all[1]))
		case !strings.Contains(v.last(), `"not_collected":[]`):
			return calls(v, "agent__collect", `{"any":true}`)
		}
		text, said := strings.Join(v.results, "\n"), ""
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			said += fmt.Sprintf("%s %d, ", name, strings.Count(text, `"output":"`+name+` is done"`))
		}
		return words(fmt.Sprintf("%s%d queued", said, strings.Count(text, `"queued":true`)))
	}
	explores := func(ctx context.Context, v view) llm.Message {
		switch {
		case v.asked == "f":
			<-ctx.Done()
		case v.round == 0:
			select {
			case <-spawned.opened:
			case <-ctx.Done():
			}
			return calls(v, "work", fmt.Sprintf(`{"for":%q}`, v.asked))
		}
		return words(v.asked + " is done")
	}
	return pair(s, leads, explores, team.Spawn{Max: 2, Reminders: 1})
}

// asked counts the requests to models, without those of the agent that is cancelled,
// and the different ones among them.
func (s *stage) asked() (all, different int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for what, n := range s.requests {
		if !strings.Contains(what, "/f/") {
			all, different = all+n, different+1
		}
	}
	return all, different
}

// recordedReplies counts the replies of models in the journal of a run.
func recordedReplies(t *testing.T, st journal.Store) (n int) {
	t.Helper()
	for e, err := range history.Entries(t.Context(), st, "t") {
		if err != nil && !errors.Is(err, journal.ErrNoThread) {
			t.Fatal(err)
		}
		if e.Kind == journal.KindEffect && strings.Split(e.ID, "\x00")[1] == "model" {
			n++
		}
	}
	return n
}

// A team whose lead collects several agents, the first that is done, and spawns above
// its limit is broken after each of its records: each output is handed over once, no
// recorded reply is requested again, and no work is done twice without an answer.
func TestCrashInCollectsAndQueuedSpawns(t *testing.T) {
	build := func(s *stage, g gate) *graph.Graph { return compile(t, crowd(s, g)) }
	count := &graphtest.Crash{Store: journal.NewMemory(), Limit: -1}
	const want = "a 1, b 1, c 1, d 1, e 1, f 0, 4 queued"
	calm, _, err := finish(t, &graph.Runner{Graph: build(newStage(), newGate()), Store: count})
	if got := agent.LastResponse(calm.State); err != nil || calm.Status != graph.Done || got != want {
		t.Fatalf("%v, %v, %q", calm.Status, err, got)
	}
	for limit := range count.RecordCount() - 3 { // where all is quick there are fewer calls of agent__collect, and records
		s, g := newStage(), newGate()
		store := &graphtest.Crash{Store: journal.NewMemory(), Limit: limit, Lost: limit%2 == 1}
		if _, _, err := finish(t, &graph.Runner{Graph: build(s, g), Store: store}); err != nil && !errors.Is(err, graphtest.ErrCrash) {
			t.Fatalf("crash after %d records: %v", limit, err)
		}
		recorded := recordedReplies(t, store.Store)
		before, _ := s.asked()
		res, doubts, err := finish(t, &graph.Runner{Graph: build(s, g), Store: store.Store})
		if got := agent.LastResponse(res.State); err != nil || res.Status != graph.Done || got != want {
			t.Fatalf("crash after %d records: %v, %v, %q, want %q", limit, res.Status, err, got, want)
		}
		after, different := s.asked()
		if all := recordedReplies(t, store.Store); recorded+after-before != different || all != different {
			t.Errorf("crash after %d records: %d replies recorded, %d requested later, %d recorded in the end, want %d", limit, recorded, after-before, all, different)
		}
		if _, works := s.total(); works < 5 || works > 5+doubts {
			t.Errorf("crash after %d records: %d works with %d doubts, want 5", limit, works, doubts)
		}
	}
}

// childDir names, in the environment of a copy of the test binary, the directory
// in which it is to run a team.
const childDir = "RADDLE_TEAM_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child runs a team, or continues with it, in a database of its own, and says on
// standard output what its models are asked.
func child(dir string) error {
	st, err := sqlite.Open(filepath.Join(dir, "runs.db"))
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }() // a journal is durable before it is used
	s := newStage()
	s.told = os.Stdout
	g, err := four(s).Compile()
	if err != nil {
		return err
	}
	res, _, err := toTheEnd(context.Background(), &graph.Runner{Graph: g, Store: st})
	fmt.Println(res.Status, agent.LastResponse(res.State))
	return err
}

// heard starts the child and kills it at one of its lines, from 1; 0: never.
func heard(t *testing.T, dir string, killAt int) (said []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		said = append(said, lines.Text())
		if len(said) == killAt {
			_ = cmd.Process.Kill() // it may have ended
		}
	}
	if err := cmd.Wait(); err != nil && killAt == 0 {
		t.Fatalf("%v, it said %q", err, said)
	}
	return said
}

// A process with several agents running is killed with SIGKILL, and another one continues: no reply
// that has led to another request is asked for again.
func TestKilled(t *testing.T) {
	whole := heard(t, t.TempDir(), 0)
	for _, at := range []int{2, 5, 8, 11, 15} {
		t.Run(strconv.Itoa(at), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			before, after := heard(t, dir, at), heard(t, dir, 0)
			for _, line := range before {
				end := strings.LastIndexByte(line, '/')
				round, err := strconv.Atoi(line[end+1:])
				if !strings.HasPrefix(line, "request ") || err != nil {
					continue
				}
				next := line[:end+1] + strconv.Itoa(round+1)
				if slices.Contains(before, next) && slices.Contains(after, line) {
					t.Errorf("%q was made before the kill, and again after it", line)
				}
			}
			if got, want := after[len(after)-1], whole[len(whole)-1]; got != want || !strings.HasPrefix(got, "done ") {
				t.Errorf("it ended with %s, want %s", got, want)
			}
		})
	}
}
