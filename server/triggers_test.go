//go:build unix

package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/process/trigger"
)

// triggerTests are the tests of triggers, which every store that keeps them must pass.
var triggerTests = map[string]func(t *testing.T, f *fleet){
	"Schedule":       testSchedule,
	"Skip":           testOverlapSkip,
	"Queue":          testOverlapQueue,
	"Cancel":         testOverlapCancel,
	"Allow":          testOverlapAllow,
	"Killed":         testTicksOfTheKilled,
	"StartedBefore":  testStartedBefore,
	"Chain":          testChain,
	"Loop":           testChainOfItself,
	"Budget":         testDailyBudget,
	"BusyDay":        testBudgetOfABusyDay,
	"CannotStart":    testCannotStart,
	"ChangedFile":    testChangedFile,
	"NoWorkerNoTick": testNoWorkerNoTick,
}

func TestTriggers(t *testing.T) { testFileFleets(t, triggerTests) }

func TestExtraTriggers(t *testing.T) { testServerFleets(t, triggerTests) }

// addAgent writes a graph with a script and triggers.
func (f *fleet) addAgent(name, script, triggers string) {
	f.t.Helper()
	dir := filepath.Join(f.home, ".config", "raddle", "agents", name)
	f.write(filepath.Join(dir, "graph.yaml"), "name: "+name+"\nstart: work\nnodes:\n  work: {type: script, script: work.sh, next: done}\n  done: {type: end, output: worked}\ntriggers:\n"+triggers)
	f.write(filepath.Join(dir, "work.sh"), script)
}

// working is a script that writes what it has done; waiting is one that waits for a file before.
const (
	working = "echo worked >> effects\necho '{}'\n"
	waiting = "while [ ! -e go ]; do sleep 0.02; done\n" + working
)

// enableAgent enables the triggers of an agent, and returns the triggers of the store.
func (f *fleet) enableAgent(s *Service, name string, budget trigger.Budget) *trigger.Set {
	f.t.Helper()
	offer, err := trigger.ReadOffer(s.process, name)
	if err != nil {
		f.t.Fatal(err)
	}
	set, err := trigger.Open(s.process)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := set.EnableOffer(f.t.Context(), offer, budget, "ada"); err != nil {
		f.t.Fatal(err)
	}
	return set
}

// makeDue lets a schedule be due since a time.
func (f *fleet) makeDue(set *trigger.Set, id string, since time.Time) {
	f.t.Helper()
	for {
		rows, _, err := set.Store.ListTriggers(f.t.Context())
		if err != nil {
			f.t.Fatal(err)
		}
		row := rows[slices.IndexFunc(rows, func(r journal.Trigger) bool { return r.ID == id })]
		row.Due = since
		if _, err := set.Store.PutTrigger(f.t.Context(), row); err == nil {
			return
		}
	}
}

// readTicks returns the ticks of a trigger, the oldest first.
func (f *fleet) readTicks(set *trigger.Set, id string) []journal.Tick {
	f.t.Helper()
	list, err := set.Store.ListTicks(f.t.Context(), id, 1000)
	if err != nil {
		f.t.Fatal(err)
	}
	slices.Reverse(list)
	return list
}

// awaitTicks waits until the ticks of a trigger have certain states, the oldest first.
func (f *fleet) awaitTicks(set *trigger.Set, id, want string) []journal.Tick {
	f.t.Helper()
	for end := time.Now().Add(twoLeases); ; f.pause() {
		list := f.readTicks(set, id)
		var states []string
		for i := range list {
			states = append(states, list[i].State)
		}
		if strings.Join(states, " ") == want {
			return list
		}
		if time.Now().After(end) {
			for i := range list {
				f.t.Logf("%s: %s %s", list[i].Key, list[i].State, list[i].Note)
			}
			f.t.Fatalf("the ticks of %s are %q, want %q", id, strings.Join(states, " "), want)
		}
	}
}

// Two servers of one store were down for an hour: each tick that counts starts one run.
func testSchedule(t *testing.T, f *fleet) {
	f.addAgent("pulse", working, "  - {schedule: '0,20,40 * * * *', overlap: allow, catch_up: 45m, state: {day: '{{date}}'}}\n")
	set := f.enableAgent(f.join(Options{NoWorker: true}), "pulse", trigger.Budget{})
	now := time.Now()
	f.makeDue(set, "pulse/schedule", now.Truncate(20*time.Minute).Add(-time.Hour))
	one := f.join(Options{})
	f.join(Options{})
	want := "missed"
	for at := now.Truncate(20 * time.Minute).Add(-40 * time.Minute); !at.After(now); at = at.Add(20 * time.Minute) {
		if now.Sub(at) < 45*time.Minute-time.Minute {
			want += " done"
		}
	}
	list := f.awaitTicks(set, "pulse/schedule", want)
	seen := map[string]bool{}
	for _, tick := range list[1:] {
		st := f.await(one, tick.Run, "done", leaseTTL)
		if seen[tick.Run] || st.Record == nil || !st.Record.Headless || st.Record.Agent != "pulse" {
			t.Errorf("the run of %s is %+v", tick.Key, st)
		}
		seen[tick.Run] = true
	}
	if n := len(f.effects()); n != len(list)-1 {
		t.Errorf("there are %d effects of %d ticks", n, len(list)-1)
	}
}

// startOverlap starts a server with a trigger whose run waits, and fires it again twice.
func (f *fleet) startOverlap(policy string) (*Service, *trigger.Set) {
	f.addAgent("slow", waiting, "  - {event: go, overlap: "+policy+"}\n")
	s := f.join(Options{})
	f.join(Options{})
	set := f.enableAgent(s, "slow", trigger.Budget{})
	for i := range 3 {
		if _, err := set.FireEvent(f.t.Context(), "go", fmt.Sprint(i), nil); err != nil {
			f.t.Fatal(err)
		}
		if i == 0 {
			f.awaitTicks(set, "slow/event", "started")
		}
	}
	return s, set
}

func testOverlapSkip(t *testing.T, f *fleet) {
	_, set := f.startOverlap("skip")
	list := f.awaitTicks(set, "slow/event", "started skipped skipped")
	if want := "run " + list[0].Run + " still works"; list[1].Note != want || list[1].Run != "" {
		t.Errorf("a tick that was left out is %+v, want %s", list[1], want)
	}
	f.letGo()
	f.awaitTicks(set, "slow/event", "done skipped skipped")
	if _, err := set.FireEvent(t.Context(), "go", "later", nil); err != nil {
		t.Fatal(err)
	}
	f.awaitTicks(set, "slow/event", "done skipped skipped done")
}

func testOverlapQueue(t *testing.T, f *fleet) {
	s, set := f.startOverlap("queue")
	f.awaitTicks(set, "slow/event", "started waiting waiting")
	f.letGo()
	list := f.awaitTicks(set, "slow/event", "done done done")
	ended := time.Time{}
	for _, tick := range list {
		st, err := s.ReadState(withTrigger(t.Context(), "test"), tick.Run)
		if err != nil || st.Started.Before(ended) {
			t.Errorf("run %s was started at %v, and the one before ended at %v (%v)", tick.Run, st.Started, ended, err)
		}
		ended = st.Updated
	}
}

// The newest tick counts: what came before it is ended, or not even started.
func testOverlapCancel(t *testing.T, f *fleet) {
	_, set := f.startOverlap("cancel")
	for end := time.Now().Add(twoLeases); ; f.pause() {
		list := f.readTicks(set, "slow/event")
		if len(list) == 3 && list[0].State == graph.Abandoned.String() && list[2].State == trigger.Started && list[1].State != journal.TickWaiting && list[1].State != trigger.Started {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the ticks are %+v", list)
		}
	}
	f.letGo()
	list := f.readTicks(set, "slow/event")
	f.awaitTicks(set, "slow/event", list[0].State+" "+list[1].State+" done")
	if n := len(f.effects()); n != 1 {
		t.Errorf("there are %d effects: %+v", n, list)
	}
}

func testOverlapAllow(t *testing.T, f *fleet) {
	_, set := f.startOverlap("allow")
	f.awaitTicks(set, "slow/event", "started started started")
	f.letGo()
	f.awaitTicks(set, "slow/event", "done done done")
}

// ticksName is the name of a server that only drives triggers, in tests that kill it.
const ticksName = "ticks"

// serveTicks returns when no tick is left that could start a run, and no run works.
func serveTicks(ctx context.Context, s *Service) error {
	set, err := trigger.Open(s.process)
	if err != nil {
		return err
	}
	for open := true; open; time.Sleep(pollInterval) {
		list, err := set.Store.ListTicks(ctx, "", 1000)
		if err != nil {
			return err
		}
		open = slices.ContainsFunc(list, func(t journal.Tick) bool { return t.State == journal.TickWaiting || t.State == trigger.Started })
	}
	return s.Close(ctx)
}

// Servers are killed between all that they do about ticks: each tick has its run, and each run works once.
func testTicksOfTheKilled(t *testing.T, f *fleet) {
	f.addAgent("pulse", working, "  - {event: go, overlap: queue}\n  - {event: go, name: wild}\n")
	watch := f.join(Options{NoWorker: true})
	set := f.enableAgent(watch, "pulse", trigger.Budget{})
	const events = 6
	for i := range events {
		if _, err := set.FireEvent(t.Context(), "go", fmt.Sprint(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	var last *exec.Cmd
	for range 6 {
		last = startKilled(f.world, ticksName, storeVar+"="+f.store)
		time.Sleep(time.Duration(300+random.IntN(900)) * time.Millisecond)
		_ = last.Process.Kill()
		_ = last.Wait()
	}
	last = startKilled(f.world, ticksName, storeVar+"="+f.store)
	defer func() {
		_ = last.Process.Kill()
		_ = last.Wait()
	}()
	done := strings.TrimSpace(strings.Repeat("done ", events))
	f.awaitTicks(set, "pulse/event", done)
	f.awaitTicks(set, "pulse/wild", done)
	list, err := watch.process.Runs.ListRuns(t.Context(), "")
	if err != nil || len(list) != 2*events {
		t.Errorf("%d runs were started for %d ticks (%v)", len(list), 2*events, err)
	}
	known := map[string]bool{}
	for _, tick := range f.readTicks(set, "") {
		known[tick.Run] = true
	}
	for i := range list {
		if !known[list[i].Run] || list[i].Status != "done" {
			t.Errorf("run %s (%s) is that of no tick", list[i].Run, list[i].Status)
		}
	}
}

// A server has started the run of a tick and was killed before it could say so: the next one finds the run.
func testStartedBefore(t *testing.T, f *fleet) {
	f.addAgent("pulse", working, "  - {event: go}\n")
	idle := f.join(Options{NoWorker: true})
	set := f.enableAgent(idle, "pulse", trigger.Budget{})
	if _, err := set.FireEvent(t.Context(), "go", "1", nil); err != nil {
		t.Fatal(err)
	}
	taken, err := set.Store.TakeTicks(t.Context(), 1, time.Second)
	if err != nil || len(taken) != 1 {
		t.Fatal(taken, err)
	}
	if _, err := idle.StartRun(t.Context(), StartRequest{Agent: "pulse", ID: taken[0].Run, Headless: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := idle.StartRun(t.Context(), StartRequest{Agent: "pulse", ID: taken[0].Run, Headless: true}); err == nil {
		t.Error("one run was started twice")
	}
	f.join(Options{})
	list := f.awaitTicks(set, "pulse/event", "done")
	if n := len(f.effects()); n != 1 || list[0].Attempts < 2 {
		t.Errorf("there are %d effects: %+v", n, list[0])
	}
}

// The end of a run starts another agent, whatever has started the first.
func testChain(t *testing.T, f *fleet) {
	f.addAgent("first", working, "  - {event: never}\n")
	f.addAgent("good", working, "  - {run: first done, map: {state: {what: '{{output}}'}}}\n")
	f.addAgent("bad", working, "  - {run: first failed}\n")
	s := f.join(Options{})
	f.join(Options{})
	set := f.enableAgent(s, "good", trigger.Budget{})
	f.enableAgent(s, "bad", trigger.Budget{})
	start(t, s, "first")
	list := f.awaitTicks(set, "good/run", "done")
	if in := trigger.InputOf(&list[0]); in.Depth != 1 {
		t.Errorf("the input is %+v", in)
	}
	if n := len(f.readTicks(set, "bad/run")); n != 0 {
		t.Errorf("a run that is done has %d ticks of failures", n)
	}
}

// An agent that starts itself stops.
func testChainOfItself(t *testing.T, f *fleet) {
	f.addAgent("loop", "echo '{}'\n", "  - {run: loop done}\n")
	s := f.join(Options{})
	set := f.enableAgent(s, "loop", trigger.Budget{})
	tick := journal.Tick{Trigger: "loop/run", Key: "deep", Time: time.Now(), Run: graph.DeriveID(time.Now(), "loop/run", "deep"), State: journal.TickWaiting}
	in := trigger.Input{Depth: maxChain}
	if err := in.Encode(&tick); err != nil {
		t.Fatal(err)
	}
	if _, err := set.Store.AddTicks(t.Context(), nil, []journal.Tick{tick}); err != nil {
		t.Fatal(err)
	}
	list := f.awaitTicks(set, "loop/run", "done skipped")
	if !strings.Contains(list[1].Note, "have started each other") {
		t.Errorf("the tick is %+v", list[1])
	}
}

// What the runs of a day have spent is not spent again.
func testDailyBudget(t *testing.T, f *fleet) {
	dir := filepath.Join(f.home, ".config", "raddle", "agents", "talk")
	f.write(filepath.Join(dir, "graph.yaml"), "name: talk\nmodel: script:replies.yaml\nstart: say\nnodes:\n  say: {type: llm, prompt: hi, next: again}\n  again: {type: llm, prompt: hi, next: done}\n  done: {type: end, output: said}\ntriggers: [{event: go, overlap: queue}]\n")
	f.write(filepath.Join(dir, "replies.yaml"), "- text: a\n- text: b\n")
	s := f.join(Options{})
	set := f.enableAgent(s, "talk", trigger.Budget{Run: agent.Limits{Calls: 2}, Day: agent.Limits{Calls: 3}})
	for i := range 3 {
		if _, err := set.FireEvent(t.Context(), "go", fmt.Sprint(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	list := f.awaitTicks(set, "talk/event", "done failed skipped")
	if spent := trigger.InputOf(&list[0]).Spent; spent.Calls != 2 {
		t.Errorf("the first run has spent %+v", spent)
	}
	if !strings.Contains(list[1].Note, "budget") || list[2].Note != "the budget of 24 hours is used up: 3 of 3 calls" {
		t.Errorf("the ticks are %+v", list)
	}
}

// What was spent in 24 hours counts, however many ticks have come since.
func testBudgetOfABusyDay(t *testing.T, f *fleet) {
	f.addAgent("pulse", working, "  - {event: go}\n")
	s := f.join(Options{})
	set := f.enableAgent(s, "pulse", trigger.Budget{Day: agent.Limits{Calls: 3}})
	now := time.Now()
	var ticks []journal.Tick
	for i := range ticksRead + 5 {
		tick := journal.Tick{Trigger: "pulse/event", Key: fmt.Sprint(i), Time: now.Add(time.Duration(i-2*ticksRead) * time.Second), State: trigger.Skipped}
		if i == 0 { // the oldest one
			tick.Run = graph.DeriveID(tick.Time, tick.Trigger, tick.Key)
			tick.State = "done"
			if err := (&trigger.Input{Spent: agent.Limits{Calls: 3}}).Encode(&tick); err != nil {
				t.Fatal(err)
			}
		}
		ticks = append(ticks, tick)
	}
	if _, err := set.Store.AddTicks(t.Context(), nil, ticks); err != nil {
		t.Fatal(err)
	}
	if _, err := set.FireEvent(t.Context(), "go", "next", nil); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(twoLeases); ; f.pause() {
		list, err := set.Store.ListTicks(t.Context(), "pulse/event", 1)
		if err != nil {
			t.Fatal(err)
		}
		if list[0].State == journal.TickWaiting && time.Now().Before(end) {
			continue
		}
		if list[0].State != trigger.Skipped || !strings.Contains(list[0].Note, "3 of 3 calls") {
			t.Errorf("the tick is %+v", list[0])
		}
		return
	}
}

// A tick whose run cannot be started ends, and says why.
func testCannotStart(t *testing.T, f *fleet) {
	dir := filepath.Join(f.home, ".config", "raddle", "agents", "talk")
	f.write(filepath.Join(dir, "config.yaml"), "name: talk\nmodel: script:replies.yaml\ntriggers: [{event: go, map: {prompt: x}}]\n")
	f.write(filepath.Join(dir, "replies.yaml"), "- text: a\n")
	s := f.join(Options{})
	set := f.enableAgent(s, "talk", trigger.Budget{})
	tick := journal.Tick{Trigger: "talk/event", Key: "bad", Time: time.Now(), Run: graph.DeriveID(time.Now(), "talk/event", "bad"), State: journal.TickWaiting}
	in := trigger.Input{Failures: maxFailures - 1} // and a model needs a prompt
	if err := in.Encode(&tick); err != nil {
		t.Fatal(err)
	}
	if _, err := set.Store.AddTicks(t.Context(), nil, []journal.Tick{tick}); err != nil {
		t.Fatal(err)
	}
	list := f.awaitTicks(set, "talk/event", "failed")
	if !strings.Contains(list[0].Note, "needs a prompt") || list[0].Run != "" {
		t.Errorf("the tick is %+v", list[0])
	}
}

// A changed file starts nothing, and the trigger says why.
func testChangedFile(t *testing.T, f *fleet) {
	f.addAgent("pulse", working, "  - {schedule: '* * * * *'}\n")
	set := f.enableAgent(f.join(Options{NoWorker: true}), "pulse", trigger.Budget{})
	f.write(filepath.Join(f.home, ".config", "raddle", "agents", "pulse", "work.sh"), "echo stolen >> effects\necho '{}'\n")
	f.makeDue(set, "pulse/schedule", time.Now().Add(-time.Minute))
	f.join(Options{})
	for end := time.Now().Add(twoLeases); ; f.pause() {
		trig, err := set.FindOne(t.Context(), "pulse")
		if err != nil || time.Now().After(end) {
			t.Fatal("it is not off", err)
		}
		if trig.Status == trigger.Off {
			if !strings.Contains(trig.Reason, "work.sh") {
				t.Errorf("the reason is %s", trig.Reason)
			}
			break
		}
	}
	if n := len(f.effects()); n > 0 {
		t.Errorf("it has worked %d times", n)
	}
}

func testNoWorkerNoTick(t *testing.T, f *fleet) {
	f.addAgent("pulse", working, "  - {event: go}\n")
	s := f.join(Options{NoWorker: true})
	if s.triggers != nil {
		t.Error("a service that drives nothing drives triggers")
	}
	set := f.enableAgent(s, "pulse", trigger.Budget{})
	if _, err := set.FireEvent(t.Context(), "go", "1", nil); err != nil {
		t.Fatal(err)
	}
	if list := f.readTicks(set, "pulse/event"); len(list) != 1 || list[0].Attempts != 0 {
		t.Errorf("the ticks are %+v", list)
	}
}
