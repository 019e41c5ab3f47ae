package toolbox

import (
	"path/filepath"
	"slices"
	"testing"

	"raddle.dev/internal/testkit/testfile"
)

// What runs without being named: the directories of raddle, the agents of the run, and what their scripts load from
// beside their directories. A path that stands in a script for another purpose is none.
func TestPathsOfCode(t *testing.T) {
	s := newTestShared(t)
	tb := s.NewToolbox(s.Dirs.Work, "")
	dir := filepath.Join(s.Dirs.Agents, "a")
	for name, text := range map[string]string{
		"tools.sh":     "source ../lib/common.sh\ncat ../data/table\n. ../own/setup\n",
		"tools/t.py":   "sys.path.append('../../pylib')\nprint('../../other')\nimport x # ../inside\n",
		"tools/far.ts": "import y from '../../../far.ts'\n",
	} {
		testfile.WriteFile(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	tb.agents[dir] = nil
	got := tb.codePaths()
	for _, path := range []string{s.Dirs.Config, s.Dirs.Functions, s.Dirs.Agents, s.Dirs.Bundled, dir} {
		if !slices.Contains(got, path) {
			t.Errorf("%s is not guarded", path)
		}
	}
	agents := s.Dirs.Agents
	for path, want := range map[string]bool{
		filepath.Join(agents, sharedDir):               true,
		filepath.Join(agents, "lib", "common.sh"):      true,
		filepath.Join(agents, "lib"):                   true,
		filepath.Join(agents, "own", "setup"):          true,
		filepath.Join(agents, "pylib"):                 true,
		filepath.Join(filepath.Dir(agents), "far.ts"):  true,
		filepath.Join(agents, "data", "table"):         false,
		filepath.Join(agents, "other"):                 false,
		filepath.Dir(agents):                           false, // it holds the agent
		filepath.Join(dir, "inside"):                   false, // guarded with the agent
		filepath.Join(filepath.Dir(agents), "outside"): false,
	} {
		if slices.Contains(got, path) != want {
			t.Errorf("%s is guarded: %t", path, !want)
		}
	}
	if again := tb.codePaths(); !slices.Equal(again, got) {
		t.Errorf("%q, then %q", got, again)
	}
}
