//go:build unix

package app

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/tool"
	"raddle.dev/tool/permission"
)

// A rule that can never match, because the tool does not declare what it touches, is
// an error with its place, not a rule without effect.
func TestRuleInVain(t *testing.T) {
	w := newPlace(t)
	w.write("mine/config.yaml", "name: Mine\n")
	w.write("mine/tools.sh", "# @cmd Runs a text.\n# @option --text!\nrun_it() { eval \"$argc_text\"; }\n")
	w.write("home/.config/raddle/permissions.yaml", "deny:\n  - run_it(touch *)\n")
	proc, _ := w.process(-1)
	_, err := proc.Load(LoadRequest{Agent: filepath.Join(w.dir, "mine")})
	if err == nil || !strings.Contains(err.Error(), `permissions.yaml:2:5: error: rule "run_it(touch *)" can never match: the tool run_it does not declare`) {
		t.Errorf("got %v", err)
	}
	w.write("home/.config/raddle/permissions.yaml", "deny:\n  - run_it(text=touch *)\n")
	if _, err := proc.Load(LoadRequest{Agent: filepath.Join(w.dir, "mine")}); err != nil {
		t.Errorf("a rule about an argument: %v", err)
	}
}

// Each decision reads the mode, which may change while a run works.
func TestModeChangesBetweenDecisions(t *testing.T) {
	w := newPlace(t)
	w.write("mine/config.yaml", "name: Mine\n")
	proc, _ := w.process(-1)
	mode := permission.NewModeSwitch(permission.ModePlan)
	dir := filepath.Join(w.dir, "mine")
	gate, err := proc.Tools.NewGate(proc.Tools.NewToolbox(w.dir, dir), dir, mode)
	if err != nil {
		t.Fatal(err)
	}
	write := tool.Tool{Name: "save", Touches: func(json.RawMessage) (tool.Touch, error) { return tool.Touch{Writes: []string{"a.txt"}}, nil }}
	for _, c := range []struct {
		mode permission.Mode
		want agent.Verdict
	}{{permission.ModePlan, agent.Deny}, {permission.ModeAsk, agent.Ask}, {permission.ModeEdits, agent.Allow}, {permission.ModePlan, agent.Deny}} {
		mode.SetMode(c.mode)
		if d, err := gate.Decide(t.Context(), write, tool.Call{Args: json.RawMessage("{}")}, []string{"save(b.txt)"}); err != nil || d.Verdict != c.want {
			t.Errorf("mode %s: verdict %v, want %v (%v)", c.mode, d.Verdict, c.want, err)
		}
	}
}
