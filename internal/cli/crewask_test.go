//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// asksPerson is two agents that each ask a person a question, while the boss
// waits for both, and a third task that waits for a place.
func asksPerson(r request) said {
	if r.agent == "explore" {
		switch {
		case r.prompt == "late":
			return said{text: "did late"}
		case r.round == 0:
			return said{calls: []wish{{"user__ask", map[string]any{"question": "Which for " + r.prompt + "?", "options": []string{"red", "blue"}}}}}
		}
		var answer struct{ Answer string }
		_ = json.Unmarshal([]byte(r.results[0]), &answer) // otherwise it is empty, and the test reports that
		return said{text: "did " + r.prompt + " in " + answer.Answer}
	}
	switch r.round {
	case 0:
		s := fanOut("one", "two")(r)
		s.calls = append(s.calls, wish{"agent__task_create", map[string]any{"subject": "Later", "agent": "explore", "prompt": "late"}})
		return s
	case 1:
		return fanOut()(r)
	}
	var told []string
	for _, text := range r.results {
		told = append(told, regexp.MustCompile(`did \w+ in \w+`).FindAllString(text, -1)...)
	}
	slices.Sort(told)
	return said{text: strings.Join(told, ", ")}
}

func serveAsking(t *testing.T) *crewModel {
	m := serveCrew(t, asksPerson)
	config := ".config/raddle/agents/boss/config.yaml"
	m.write(config, strings.Replace(m.read(config), "agents: 4", "agents: 2", 1))
	return m
}

// openQuestions returns the questions of a run by the agent's prompt.
func (m *crewModel) openQuestions(run string) map[string]string {
	m.t.Helper()
	r := m.run("runs", "show", run, "--output", "json")
	var shown struct{ Questions []struct{ ID, Prompt string } }
	if err := json.Unmarshal([]byte(r.out), &shown); err != nil {
		m.t.Fatalf("%v\n%s%s", err, r.out, r.err)
	}
	ids := map[string]string{}
	for _, q := range shown.Questions {
		_, name, _ := strings.Cut(q.Prompt, "Which for ")
		ids[strings.TrimRight(name, "?")] = q.ID
	}
	return ids
}

// Questions of two agents are open together, and each answer reaches the agent that asked.
func TestCrewParks(t *testing.T) {
	for name, answer := range map[string]func(w *crewModel, run string, ids map[string]string) result{
		"both, the second first": func(w *crewModel, run string, ids map[string]string) result {
			return w.run("resume", "-q", run, "--answer", ids["two"]+"=blue", "--answer", ids["one"]+"=red")
		},
		"one after the other": func(w *crewModel, run string, ids map[string]string) result {
			r := w.run("resume", run, "--answer", ids["two"]+"=blue")
			if r.code != 5 || !strings.Contains(r.err, "next: raddle resume "+run+" --answer TEXT\n") || strings.Count(r.err, "asked by") != 1 {
				w.t.Errorf("one is answered: exit code %d\n%s", r.code, r.err)
			}
			return w.run("resume", "-q", run, "--answer", "red")
		},
		"by who asks": func(w *crewModel, run string, ids map[string]string) result {
			return w.run("resume", "-q", run, "--answer", spawnedID.FindString(ids["two"])+"=blue", "--answer", strings.TrimSuffix(ids["one"], "/act")+"=red")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := serveAsking(t)
			r := w.run("run", "boss", "go")
			run := w.runs()[0].Run
			ids := w.openQuestions(run)
			if r.code != 5 || r.out != "" || len(ids) != 2 {
				t.Fatalf("exit code %d, %v\n%s%s", r.code, ids, r.out, r.err)
			}
			all := ""
			for _, id := range slices.Sorted(slices.Values([]string{ids["one"], ids["two"]})) {
				all += " --answer " + id + "=TEXT"
				for _, want := range []string{"  " + id + " (user__ask), asked by explore (" + spawnedID.FindString(id) + "): ", "    alone: raddle resume " + run + " --answer " + id + "=TEXT\n"} {
					if !strings.Contains(r.err, want) {
						t.Errorf("standard error lacks %q:\n%s", want, r.err)
					}
				}
			}
			if want := "next: raddle resume " + run + all + "\n"; !strings.HasSuffix(r.err, want) {
				t.Errorf("the last line is not %q:\n%s", want, r.err)
			}
			w.standing(run, ids)
			if c := w.run("__complete", "resume", run, "--answer", ""); !strings.Contains(c.out, ids["one"]+"=\tWhich for one?") {
				t.Errorf("completion: %s", c.out)
			}
			if r := answer(w, run, ids); r.code != 0 || r.out != "did one in red, did two in blue\n" {
				t.Errorf("exit code %d, %q\n%s", r.code, r.out, r.err)
			}
		})
	}
}

// standing checks what is shown of a run that waits for two of its agents.
func (m *crewModel) standing(run string, ids map[string]string) {
	m.t.Helper()
	shown := m.run("runs", "show", run).out
	lines := regexp.MustCompile(`(?m)^(?:tree      |          ) (\S.*)$`).FindAllStringSubmatch(shown, 4)
	var tree []string
	for _, l := range lines {
		tree = append(tree, regexp.MustCompile(`\s+`).ReplaceAllString(regexp.MustCompile(`\d+\.\d\ds`).ReplaceAllString(l[1], "TIME"), " "))
	}
	want := []string{"boss waiting TIME 2 calls 24 tokens 0.0000 USD 3 tool calls"}
	for _, prompt := range []string{"one", "two"} {
		id := spawnedID.FindString(ids[prompt])
		want = append(want, fmt.Sprintf("├─ explore (%s) waiting TIME 1 call 12 tokens 0.0000 USD %s asks team/%s/act", id, prompt, id))
	}
	want = append(want, "└─ task 1: Later waiting for a place")
	if !slices.Equal(tree, want) {
		m.t.Errorf("the tree is\n%s\nwant\n%s\n%s", strings.Join(tree, "\n"), strings.Join(want, "\n"), shown)
	}
}

// On a terminal the prompts say who asks.
func TestCrewAsksOnATerminal(t *testing.T) {
	w := serveAsking(t)
	s := w.screen(nil, "run", "boss", "go")
	for _, nth := range []string{"1/2", "2/2"} {
		s.seen.until(t, nth, func(all string) bool {
			_, prompt, asked := strings.Cut(all, nth+" ")
			return asked && strings.Contains(prompt, "Other (custom)")
		})
		said := s.seen.String()
		said = said[strings.LastIndex(said, nth+" "):]
		who := regexp.MustCompile(`^./2 explore \(agent_explore_[0-9a-f]{8}\) asks:`)
		if !who.MatchString(said) {
			t.Errorf("the prompt does not say who asks: %q", said)
		}
		s.answer(enter)
	}
	s.ends(0, "did one in red, did two in red")
}

// Events carry paths and conform to the published schema, and the cost of a run is
// that of all of its agents.
func TestCrewInJSON(t *testing.T) {
	needBash(t)
	w := serveCrew(t, atWork("a", "b"))
	w.write("gate-a", "")
	w.write("gate-b", "")
	schema, err := strictSchema("events")
	if err != nil {
		t.Fatal(err)
	}
	r := w.run("run", "boss", "go", "--output", "stream-json")
	kinds := map[string]int{}
	usage := ""
	for line := range strings.Lines(r.out) {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err == nil {
			err = schema.Validate(v)
		}
		if err != nil {
			t.Errorf("%s\n%v", line, err)
		}
		var e struct {
			Path string
			Data struct {
				Type, ID string
				Usage    json.RawMessage
			}
		}
		if json.Unmarshal([]byte(line), &e) == nil { // the data of other kinds has another shape
			kinds[spawnedID.ReplaceAllString(e.Path, "ID")+e.Data.Type]++
			usage = string(e.Data.Usage)
		}
	}
	for kind, n := range map[string]int{"agent_started": 2, "agent_ended": 2, "team/lead/replied": 3, "team/ID/replied": 4, "team/ID/tool_done": 2} {
		if kinds[kind] != n {
			t.Errorf("%d events %s, want %d: %v", kinds[kind], kind, n, kinds)
		}
	}
	const all = `{"calls":7,"input_tokens":70,"output_tokens":14,"cached_tokens":0,"reasoning_tokens":0,"cost_usd":0.000098,"unpriced_calls":0,"models":["small"]}`
	if usage != all {
		t.Errorf("usage %s, want %s", usage, all)
	}
	var shown struct {
		Tree struct {
			Usage    struct{ Calls int }
			Children []struct {
				Path, Agent, Status string
				Usage               struct{ Calls int }
			}
		}
	}
	out := w.run("runs", "show", w.runs()[0].Run, "--output", "json").out
	if err := json.Unmarshal([]byte(out), &shown); err != nil || shown.Tree.Usage.Calls != 3 || len(shown.Tree.Children) != 2 {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range shown.Tree.Children {
		if c.Agent != "explore" || c.Status != "done" || c.Usage.Calls != 2 || !strings.HasPrefix(c.Path, "team/agent_explore_") {
			t.Errorf("%+v", c)
		}
	}
}

// An agent that another has spawned is below it, and one that failed says why, in
// the narration and in later output.
func TestCrewOfCrews(t *testing.T) {
	w := serveCrew(t, func(r request) said {
		spawns := map[string]string{"go": "outer", "outer": "inner"}[r.prompt]
		switch {
		case r.prompt == "inner":
			return said{refused: "there is no such thing"}
		case r.round < 2:
			return fanOut(spawns)(r)
		}
		return said{text: r.prompt + " is over"}
	})
	config := ".config/raddle/agents/explore/config.yaml"
	w.write(config, w.read(config)+"can_spawn_agents: true\n")
	r := w.run("run", "boss", "go")
	ids := spawnedID.FindAllString(r.err, -1)
	if r.code != 0 || r.out != "go is over\n" || len(ids) == 0 {
		t.Fatalf("exit code %d, %q\n%s", r.code, r.out, r.err)
	}
	outer := ids[0]
	if !regexp.MustCompile(`(?m)^▸ explore \(agent_explore_\w+: inner\) started, spawned by `+outer+`$`).MatchString(r.err) ||
		!regexp.MustCompile(`(?m)^▸ explore \(agent_explore_\w+: inner\) failed in .*there is no such thing`).MatchString(r.err) {
		t.Errorf("the narration:\n%s", r.err)
	}
	shown := w.run("runs", "show", w.runs()[0].Run).out
	if !regexp.MustCompile(`(?m)^tree       boss +done .*\n           └─ explore \(` + outer + `\) +done .*\n              └─ explore \(agent_explore_\w+\) +failed .*there is no such thing`).MatchString(shown) {
		t.Errorf("the tree:\n%s", shown)
	}
}
