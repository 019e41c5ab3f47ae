//go:build unix

package flow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// An agent node may run an agent that starts others, an llm node of a graph that runs
// agents may start some too, and a graph may be started: all of them count on from
// the agent above.
func TestDepthGoesOnThroughGraphs(t *testing.T) {
	graphText := func(start string) string {
		return "name: g\nstart: " + start + "\nnodes:\n" +
			"  run: {type: agent, agent: lead, prompt: \"{{initial_prompt}}.run\", next: e, state_updates: {x: \"{{output}}\"}}\n" +
			"  ask: {type: llm, prompt: \"{{initial_prompt}}.ask\", tools: [agent__spawn, agent__collect], next: e, state_updates: {x: \"{{output}}\"}}\n" +
			"  e: {type: end, output: \"{{x}}\"}\n"
	}
	files := map[string]string{"lead/config.yaml": leadFile, "run/graph.yaml": graphText("run"), "ask/graph.yaml": graphText("ask")}
	over := `Max agent depth exceeded (4/3)`
	for name, c := range map[string]struct {
		root string
		next map[string]string // what is started by whom that was told what
		want []string          // who was told something, beside the refusal
	}{
		"agent nodes":   {"run", map[string]string{"0.run": "run", "0.run>run.run": "a"}, []string{"lead/0.run", "lead/0.run>run.run"}},
		"llm nodes":     {"ask", map[string]string{"0.ask": "ask", "0.ask>ask.ask": "ask", "0.ask>ask.ask>ask.ask": "a", "0.ask>ask.ask>ask.ask>a": "a"}, []string{"ask/0.ask", "ask/0.ask>ask.ask", "ask/0.ask>ask.ask>ask.ask"}},
		"both":          {"lead", map[string]string{"0": "run", "0>run.run": "ask", "0>run.run>ask.ask": "a"}, []string{"lead/0", "lead/0>run.run", "ask/0>run.run>ask.ask"}},
		"deep in teams": {"lead", map[string]string{"0": "lead", "0>lead": "lead", "0>lead>lead": "run"}, []string{"lead/0", "lead/0>lead", "lead/0>lead>lead"}},
	} {
		t.Run(name, func(t *testing.T) {
			var last string
			r := func(_ context.Context, v view) llm.Message {
				to, starts := c.next[v.asked]
				switch {
				case starts && v.round == 0:
					return calls(v, spawn(to, v.asked+">"+to)...)
				case starts && v.round == 1 && v.field(0, "status") == "ok":
					return calls(v, collect(v.field(0, "id"))...)
				case starts:
					last = v.results[len(v.results)-1]
					return words(last)
				}
				return words("the end")
			}
			x := newTroupe(t, files, map[string]role{"lead": r, "ask": r, "a": r})
			writeCaseFile(t, x.root, "a/config.yaml", "name: a\ncan_spawn_agents: true\n")
			said := x.run(c.root, "0")
			if !strings.Contains(said, over) {
				t.Errorf("%s\nis not refused: %s", said, last)
			}
			for _, want := range c.want {
				if x.requests[want+"/0"] != 1 {
					t.Errorf("%s was not asked: %v", want, x.requests)
				}
			}
		})
	}
}

// The loop of an llm node that starts agents has the tools that it lists, four places,
// and the reminders count among its iterations; what still runs ends with the node,
// however that ends.
func TestLLMNodesThatStartAgents(t *testing.T) {
	const hang = "# @describe Waits\n# @cmd Waits\nhang() { mkfifo never; echo $$ > ready; read -r _ < never; }\n"
	for name, c := range map[string]struct {
		node   string
		rounds int
		want   string
	}{
		"reminded":    {"", 5, "said round 1\nsaid round 2\nsaid round 3\nsaid round 4"},
		"too often":   {"max_iterations: 3, fallback: f", 3, "fell: LLM node failed: llm node hit max_iterations (3) before LLM concluded"},
		"timeout":     {"timeout: 1, fallback: f", 1, "fell: LLM node failed: llm node timed out after 1s"},
		"model fails": {"fallback: f", 2, "fell: LLM node failed: panic in node think: it has had enough"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTroupe(t, map[string]string{"hang/config.yaml": "name: hang\n", "hang/tools.sh": hang, "g/graph.yaml": `
name: g
start: l
nodes:
  l: {type: llm, prompt: go, tools: [agent__spawn, agent__list_running], state_updates: {x: "{{output}}"}, next: e, ` + c.node + `}
  a: {type: agent, agent: hang, prompt: x, next: e}
  f: {type: end, output: "fell: {{x}}"}
  e: {type: end, output: "{{x}}"}
`}, nil)
			ready := filepath.Join(x.root, "ready")
			if err := syscall.Mkfifo(ready, 0o600); err != nil {
				t.Fatal(err)
			}
			pid, rounds := 0, 0
			x.roles = map[string]role{"hang": once("hang", "{}"), "g": func(ctx context.Context, v view) llm.Message {
				switch rounds++; {
				case rounds == 1:
					if len(v.request.Tools) != 2 {
						t.Errorf("it has %v", v.request.Tools)
					}
					return calls(v, spawn("hang", "x")...)
				case rounds == 2:
					text, err := os.ReadFile(ready)
					if pid, _ = strconv.Atoi(strings.TrimSpace(string(text))); err != nil || pid == 0 {
						t.Errorf("%q, %v", text, err)
					}
					switch name {
					case "timeout":
						<-ctx.Done()
					case "model fails":
						panic(errors.New("it has had enough"))
					}
				}
				return words(fmt.Sprint("said round ", rounds-1))
			}}
			a, r := x.runner("g", Host{Tooling: Tooling{Box: ownScripts{x.root}}}, graph.NewMemory())
			res, err := r.Invoke(t.Context(), a.Input("Go."))
			if said := OutcomeOf(res).Output; err != nil || said != c.want {
				t.Errorf("%q, %v; want %q", said, err, c.want)
			}
			if name != "timeout" && name != "model fails" && rounds != c.rounds {
				t.Errorf("%d rounds, want %d", rounds, c.rounds)
			}
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("process %d is still there: %v", pid, err)
			}
		})
	}
}

// The timeout of an agent node ends the team below it.
func TestTimeoutsOfAgentNodesEndTeams(t *testing.T) {
	t.Parallel()
	x := newTroupe(t, map[string]string{"lead/config.yaml": leadFile, "hang/config.yaml": "name: hang\n",
		"hang/tools.sh": "# @describe Waits\n# @cmd Waits\nhang() { mkfifo never; echo $$ > ready; read -r _ < never; }\n",
		"g/graph.yaml":  "name: g\nstart: a\nnodes:\n  a: {type: agent, agent: lead, prompt: x, timeout: 1, next: e}\n  e: {type: end}\n"}, nil)
	ready := filepath.Join(x.root, "ready")
	if err := syscall.Mkfifo(ready, 0o600); err != nil {
		t.Fatal(err)
	}
	pids := make(chan int, 1)
	go func() {
		text, _ := os.ReadFile(ready)
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		pids <- pid
	}()
	x.roles = map[string]role{"hang": once("hang", "{}"), "lead": spawnAll("hang")}
	a, r := x.runner("g", Host{Tooling: Tooling{Box: ownScripts{x.root}}}, graph.NewMemory())
	_, err := r.Invoke(t.Context(), a.Input("Go."))
	if err == nil || !strings.Contains(a.Explain(err).Error(), "Agent 'lead' timed out after 1s") {
		t.Error(err)
	}
	if err := syscall.Kill(<-pids, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the process is still there: %v", err)
	}
}
