package acp

import (
	"path/filepath"
	"testing"

	"raddle.dev/internal/testkit/testfile"
)

// The lead of a team says each text once, although its journal has another path for it than its events.
func TestTheLeadOfATeamSpeaksOnce(t *testing.T) {
	home := t.TempDir()
	testfile.WriteFiles(t, filepath.Join(home, ".config", "raddle", "agents"), map[string]string{
		"lead/config.yaml":       "name: lead\nmodel: script:transcript.yaml\ncan_spawn_agents: true\nspawnable_agents: [worker]\n",
		"lead/transcript.yaml":   "- text: Hello from the lead.\n",
		"worker/config.yaml":     "name: worker\nmodel: script:transcript.yaml\n",
		"worker/transcript.yaml": "- text: Done.\n",
	})
	c := connect(t, home, "lead")
	if lines, _ := c.prompt(c.newSession(), "hi"); textOf(lines) != "Hello from the lead." {
		t.Errorf("%q", lines)
	}
}
