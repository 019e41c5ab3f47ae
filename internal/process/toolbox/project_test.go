package toolbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/flow"
	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/storage/config"
)

// The servers of a project are used after consent, until the file changes; those of the user come first.
func TestProjectServersNeedConsent(t *testing.T) {
	dir := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("config/mcp.json", `{"mcpServers":{"both":{"command":"mine"}}}`)
	write("work/.mcp.json", `{"mcpServers":{"both":{"command":"theirs"},"extra":{"command":"theirs"}}}`)
	dirs := config.Dirs{Work: filepath.Join(dir, "work"), Config: filepath.Join(dir, "config"), State: filepath.Join(dir, "state"), Functions: filepath.Join(dir, "functions"), Agents: filepath.Join(dir, "agents")}
	s := NewShared(dirs, &config.Config{}, environ.Environ{}, nil)
	defer func() { _ = s.Close() }()
	open := func(ids ...string) (servers, problems string) {
		t.Helper()
		set, err := s.NewToolbox(dirs.Work, "").Open(flow.ToolNeed{Dir: filepath.Join(dir, "agents", "a"), Servers: ids})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range set.Problems {
			problems += p.Text + "\n"
		}
		return strings.Join(set.Servers, " "), problems
	}
	const needs = "they need consent before they run"
	if servers, problems := open("all"); servers != "both" || !strings.Contains(problems, needs) {
		t.Errorf("without consent: %q, %q", servers, problems)
	}
	if servers, problems := open("both"); servers != "both" || problems != "" {
		t.Errorf("an agent that wants none of them: %q, %q", servers, problems)
	}
	file, digest, err := readProject(dirs.Work)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RecordConsent(ImplicitDir{Dir: file.Path, Servers: true, Digest: digest}); err != nil {
		t.Fatal(err)
	}
	if servers, problems := open("all"); servers != "both extra" || problems != "" {
		t.Errorf("with consent: %q, %q", servers, problems)
	}
	list, err := s.ListServers()
	if err != nil || len(list) != 3 || list[0].Target != "mine" || list[1].Note != "another one with this name counts" || list[2].Note != "" {
		t.Errorf("the servers are %+v, %v", list, err)
	}
	write("work/.mcp.json", `{"mcpServers":{"extra":{"command":"other"}}}`)
	if servers, problems := open("extra"); servers != "" || !strings.Contains(problems, needs) {
		t.Errorf("after a change: %q, %q", servers, problems)
	}
	// A link that leads out of the workspace is not a file of the project.
	if err := os.Remove(file.Path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "config", "mcp.json"), file.Path); err != nil {
		t.Fatal(err)
	}
	if servers, problems := open("all"); servers != "both" || !strings.Contains(problems, "are not used") {
		t.Errorf("a link: %q, %q", servers, problems)
	}
}
