package toolbox

import (
	"os"
	"path/filepath"
	"testing"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/testkit/testfile"
)

// A copy that is damaged or of another program shows no change, or all files as new; it never stops a run.
func TestDamagedCopyOfTrusted(t *testing.T) {
	t.Parallel()
	for text, changes := range map[string]int{"": 0, "{": 0, "null": 1, `{"files": null}`: 1, `{"files": {"x": {}}}`: 2, `{"files": {"../x": {"text": "y"}}}`: 2, `[]`: 0} {
		dir := t.TempDir()
		s := NewShared(config.Dirs{Work: dir, State: filepath.Join(dir, "state"), Config: filepath.Join(dir, "config"), Agents: filepath.Join(dir, "agents")}, &config.Config{}, environ.Environ{}, nil)
		skills := filepath.Join(dir, "skills")
		testfile.WriteFile(t, filepath.Join(skills, "a", "SKILL.md"), "text\n")
		path := s.trustedPath(skills)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		testfile.WriteFile(t, path, text)
		u := ImplicitDir{Dir: skills, Skills: true}
		s.compareTrusted(&u)
		if len(u.Changes) != changes {
			t.Errorf("%s: %d changes, want %d: %+v", text, len(u.Changes), changes, u.Changes)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
