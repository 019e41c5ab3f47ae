//go:build unix

package app

import (
	"path/filepath"
	"strings"
	"testing"
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
