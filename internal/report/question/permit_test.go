package question

import (
	"encoding/json"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
)

// The box fits terminals of every width, and loses nothing of the command.
func TestPermissionBoxWidths(t *testing.T) {
	command := "go vet ./... && printf '%s' 日本語 " + strings.Repeat("a-long-word/", 30) + " && rm -rf build"
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(agent.CallData{ID: "c", Tool: "execute_command", Args: args, Agent: "a-rather-long-name-of-an-agent", Detail: &agent.CallDetail{
		Does: "run a command", Command: command, Risks: []string{"removes files permanently"}, Parts: []agent.CallPart{{Text: "rm -rf build", Why: "asks", Detail: "build/ (12 files)"}}}})
	if err != nil {
		t.Fatal(err)
	}
	letters := func(s string) string { return strings.NewReplacer(" ", "", "\n", "", "│", "").Replace(s) }
	for cols := 20; cols <= 200; cols++ {
		p := newPermit(nil, graph.Question{ID: "act", Kind: agent.KindPermission, Data: data, Options: []string{"once", "no"}}, false)
		p.cols = cols
		p.listChoices()
		for _, text := range []string{p.describeCall(), p.explain()} {
			for line := range strings.SplitSeq(text, "\n") {
				if term.TextWidth(line) > cols {
					t.Fatalf("%d columns: %q", cols, line)
				}
			}
		}
		if box := p.describeCall(); !strings.Contains(letters(box), letters(command)) || !strings.Contains(letters(box), letters("! removes files permanently: build/ (12 files)")) {
			t.Fatalf("%d columns: a part is missing in\n%s", cols, box)
		}
	}
}
