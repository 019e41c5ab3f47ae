package team_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/team"
)

// An interrupted team is a team whose user interrupts the lead's turn.
type interruptedTeam struct {
	t     *testing.T
	stage *stage
	store journal.Store
	over  bool // the models answer at once

	config team.Config
	stop   chan struct{}
	press  func()
}

func (x *interruptedTeam) requests() (n int) {
	x.stage.mu.Lock()
	defer x.stage.mu.Unlock()
	for _, count := range x.stage.requests {
		n += count
	}
	return n
}

// hang interrupts the turn and returns when the request is cancelled.
func (x *interruptedTeam) hang(ctx context.Context) llm.Message {
	x.press()
	<-ctx.Done()
	return words("never said")
}

func (x *interruptedTeam) arm() {
	stop := make(chan struct{})
	x.stop, x.press = stop, sync.OnceFunc(func() { close(stop) })
}

// drive drives the thread and interrupts it at a question if asks is set.
func (x *interruptedTeam) drive(ctx context.Context, resume bool, asks bool) (res graph.Result) {
	x.t.Helper()
	r := &graph.Runner{Graph: compile(x.t, x.config), Store: x.store}
	events := r.Run(ctx, graph.Input{Thread: "t", Set: agent.Turn("Go."), Topics: graph.AllTopics})
	if resume {
		events = r.Resume(ctx, graph.Resume{Thread: "t", Topics: graph.AllTopics})
	}
	for {
		for ev, err := range events {
			if err != nil {
				x.t.Errorf("the drive failed: %v", err)
			}
			switch b := ev.Body.(type) {
			case graph.RunEnded:
				res = b.Result
			case graph.QuestionAsked:
				if asks {
					x.press()
				}
			}
		}
		select {
		case <-x.stop:
		default:
			return res
		}
		if res.Status != graph.Waiting {
			return res
		}
		events = r.Resume(ctx, graph.Resume{Thread: "t", Answers: agent.InterruptAnswers(res.Questions, team.LeadNode(agent.NodeAct)), Topics: graph.AllTopics})
	}
}

// The turn of a lead may be interrupted wherever the team is: the turn ends, the other agents are cancelled, nothing
// is requested any more, and the next turn works.
func TestInterruptedTeam(t *testing.T) {
	spawnTwo := func(v view) llm.Message { return calls(v, append(spawnCall("one"), spawnCall("two")...)...) }
	collect := func(v view) llm.Message { return calls(v, "agent__collect", `{"any":true}`) }
	ask := func(v view) llm.Message { return calls(v, "user__confirm", `{"question":"Sure?"}`) }
	for _, k := range []struct {
		name     string
		asks     bool // the user interrupts at a question
		lead     func(x *interruptedTeam, ctx context.Context, v view) llm.Message
		explorer func(x *interruptedTeam, ctx context.Context, v view) llm.Message
		spawn    team.Spawn
	}{
		{"in a reply of the lead", false,
			func(x *interruptedTeam, ctx context.Context, v view) llm.Message {
				if v.round == 0 {
					return spawnTwo(v)
				}
				return x.hang(ctx)
			}, func(x *interruptedTeam, ctx context.Context, v view) llm.Message { <-ctx.Done(); return words("") }, team.Spawn{}},
		{"in a reply of another agent, the lead collects", false,
			func(x *interruptedTeam, ctx context.Context, v view) llm.Message {
				if v.round == 0 {
					return spawnTwo(v)
				}
				return collect(v)
			}, func(x *interruptedTeam, ctx context.Context, v view) llm.Message { return x.hang(ctx) }, team.Spawn{}},
		{"an agent waits for a place", false,
			func(x *interruptedTeam, ctx context.Context, v view) llm.Message {
				if v.round == 0 {
					return spawnTwo(v)
				}
				return collect(v)
			}, func(x *interruptedTeam, ctx context.Context, v view) llm.Message { return x.hang(ctx) }, team.Spawn{Max: 1}},
		{"at a question of another agent", true,
			func(x *interruptedTeam, ctx context.Context, v view) llm.Message {
				if v.round == 0 {
					return calls(v, spawnCall("one")...)
				}
				return collect(v)
			}, func(x *interruptedTeam, ctx context.Context, v view) llm.Message { return ask(v) }, team.Spawn{}},
		{"at questions of all", true,
			func(x *interruptedTeam, ctx context.Context, v view) llm.Message {
				if v.round == 0 {
					return spawnTwo(v)
				}
				return ask(v)
			}, func(x *interruptedTeam, ctx context.Context, v view) llm.Message { return ask(v) }, team.Spawn{}},
		{"at a question of the lead, the others work", true,
			func(x *interruptedTeam, ctx context.Context, v view) llm.Message {
				if v.round == 0 {
					return spawnTwo(v)
				}
				return ask(v)
			}, func(x *interruptedTeam, ctx context.Context, v view) llm.Message { return x.hang(ctx) }, team.Spawn{}},
		{"the lead has ended its turn", false,
			func(x *interruptedTeam, ctx context.Context, v view) llm.Message {
				switch v.round {
				case 0:
					return spawnTwo(v)
				case 1:
					return words("I am done.")
				}
				return x.hang(ctx)
			}, func(x *interruptedTeam, ctx context.Context, v view) llm.Message { <-ctx.Done(); return words("") }, team.Spawn{}},
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			x := &interruptedTeam{t: t, stage: newStage(), store: journal.NewMemory()}
			x.arm()
			part := func(play func(*interruptedTeam, context.Context, view) llm.Message) part {
				return func(ctx context.Context, v view) llm.Message {
					if x.over {
						return words("fine")
					}
					return play(x, ctx, v)
				}
			}
			x.config = pair(x.stage, part(k.lead), part(k.explorer), k.spawn)
			x.config.Lead.Agent.Tools = agent.UserTools(false)
			e := x.config.Agents["explore"]
			e.Agent.Tools = append(e.Agent.Tools, agent.UserTools(false)...)
			x.config.Agents["explore"] = e
			res := x.drive(agent.WithInterrupt(t.Context(), x.stop), false, k.asks)
			if res.Status != graph.Done || !agent.WasInterrupted(res.State) || len(res.Questions) > 0 {
				t.Fatalf("status %v, interrupted: %v, questions %v", res.Status, agent.WasInterrupted(res.State), res.Questions)
			}
			x.checkKilled(res)
			x.over = true
			x.arm()
			res = x.drive(agent.WithInterrupt(t.Context(), x.stop), false, false)
			if res.Status != graph.Done || agent.LastResponse(res.State) != "fine" {
				t.Errorf("the next turn: %v %q", res.Status, agent.LastResponse(res.State))
			}
		})
	}
}

// checkKilled resumes each journal that a kill after the interruption could have left.
func (x *interruptedTeam) checkKilled(want graph.Result) {
	x.t.Helper()
	var all []journal.Record
	first := 0
	for r, err := range journal.Records(x.t.Context(), x.store, "t", journal.Range{}) {
		if err != nil {
			x.t.Fatal(err)
		}
		if all = append(all, r); first == 0 && strings.Contains(string(r.Head), "shared\x00=interrupted") {
			first = len(all)
		}
	}
	if first == 0 {
		x.t.Fatal("the journal does not say that the turn was interrupted")
	}
	whole, before := x.store, x.requests()
	for n := first; n < len(all); n++ {
		x.store = journal.NewMemory()
		if err := x.store.Append(x.t.Context(), "t", 0, all[:n]); err != nil {
			x.t.Fatal(err)
		}
		res := x.drive(agent.WithInterrupt(x.t.Context(), nil), true, false)
		if res.Status != graph.Done || !agent.WasInterrupted(res.State) {
			x.t.Errorf("killed after record %d of %d (%v): %v", n, len(all), all[n-1].Kind, res.Status)
		}
	}
	x.store = whole
	if n := x.requests(); n != before {
		x.t.Errorf("%d requests were made after the interruption", n-before)
	}
}
