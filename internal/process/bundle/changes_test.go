package bundle

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
)

// The review covers what is not committed, otherwise the branch, otherwise the last commit.
func TestChanges(t *testing.T) {
	b := newBox(t)
	b.refused("code-reviewer", "get_diff", nil, "no git repository")
	b.file("a.txt", "one\ntwo\n")
	b.git("init", "-q", "-b", "main")
	b.want("code-reviewer", "get_changed_files", nil, "since the beginning", "added\t+2 -0\ta.txt")
	b.commit()
	b.want("code-reviewer", "get_diff", nil, "since the beginning", "+one")
	b.file("b c.txt", "three\n")
	first := b.commit()
	b.want("code-reviewer", "get_changed_files", nil, "since the commit before the last", "added\t+1 -0\tb c.txt", "!a.txt")
	b.git("switch", "-q", "-c", "work")
	b.file("a.txt", "one\n2\nmore\n")
	b.commit()
	b.git("rm", "-q", "b c.txt")
	b.commit()
	b.want("code-reviewer", "get_changed_files", nil, "since where the branch left main ("+first, "modified\t+2 -1\ta.txt", "deleted\t+0 -1\tb c.txt")
	b.file("a.txt", "one\n2\n")
	b.file("dir/new é.txt", "new\n")
	b.file("dir/pic.bin", "\x00\x01")
	before, index := tree(t, b.work), b.git("status", "--porcelain")
	b.want("code-reviewer", "get_changed_files", nil, "since the last commit", "modified\t+0 -1\ta.txt", "added\t+1 -0\tdir/new é.txt", "!b c.txt")
	b.want("code-reviewer", "get_diff", nil, "-more", "+++ b/dir/new é.txt", "+new", "Binary files /dev/null and b/dir/pic.bin differ", "!-two")
	b.want("code-reviewer", "get_diff", map[string]string{"base": "main"}, "since main ("+first, "-two", "+new", "deleted file")
	b.want("code-reviewer", "get_diff", map[string]string{"base": "HEAD~1"}, "deleted file", "!-two")
	for _, base := range []string{"nowhere", "--output=x", "-h", "main; rm a.txt"} {
		b.refused("code-reviewer", "get_diff", map[string]string{"base": base}, "git knows no commit")
	}
	b.tidy(before)
	if after := b.git("status", "--porcelain"); after != index {
		t.Errorf("the index is not what it was:\n%s\n%s", index, after)
	}
	b.commit()
	b.git("switch", "-q", "main")
	b.want("code-reviewer", "get_changed_files", map[string]string{"base": "HEAD"}, "Nothing has changed.")
	b.want("code-reviewer", "get_diff", map[string]string{"base": "main"}, "Nothing has changed.")
}

// script runs a script node's program as a graph does, with a large state in a file,
// and returns its output.
func (b *box) script(name, state string, env ...string) (out map[string]any, errs string) {
	b.t.Helper()
	testneed.RequirePrograms(b.t, "python3")
	path := filepath.Join(b.agents, filepath.FromSlash(name))
	cmd := exec.Command("python3", path)
	cmd.Dir = filepath.Dir(filepath.Dir(path))
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.agents, "GIT_CONFIG_NOSYSTEM=1", "RADDLE_WORKSPACE=" + b.work,
		"PYTHONDONTWRITEBYTECODE=1"}, env...)
	if given := "GRAPH_STATE=" + state; len(state) > 32<<10 {
		large := filepath.Join(b.t.TempDir(), "state.json")
		testfile.WriteFile(b.t, large, state)
		cmd.Env = append(cmd.Env, "GRAPH_STATE_FILE="+large)
	} else {
		cmd.Env = append(cmd.Env, given)
	}
	var text strings.Builder
	cmd.Stderr = &text
	printed, err := cmd.Output()
	if err != nil {
		return nil, text.String()
	}
	if err := json.Unmarshal(printed, &out); err != nil {
		b.t.Fatalf("%v: %s", err, printed)
	}
	return out, text.String()
}

// The gate's script sees the same changes.
func TestGateChanges(t *testing.T) {
	b := newBox(t)
	diff := func(prompt string) (map[string]any, string) {
		return b.script("review-gate/scripts/diff.py", `{"initial_prompt": "`+prompt+`"}`)
	}
	if _, errs := diff(""); !strings.Contains(errs, "no git repository") {
		t.Errorf("got %s", errs)
	}
	b.file("a.txt", "one\n")
	b.git("init", "-q", "-b", "main")
	if out, _ := diff(""); !strings.Contains(out["diff"].(string), "+one") {
		t.Errorf("before the first commit: %v", out)
	}
	b.commit()
	b.git("switch", "-q", "-c", "work")
	b.file("a.txt", "one\xff\n")
	b.commit()
	if out, _ := diff(""); !strings.Contains(out["diff"].(string), "+one\uFFFD") || !strings.Contains(out["summary"].(string), "where the branch left main") {
		t.Errorf("a branch: %v", out)
	}
	b.file("new é.txt", strings.Repeat("long line\n", 30_000))
	out, _ := diff(" main ")
	if text := out["diff"].(string); !strings.Contains(out["summary"].(string), "since main") || !strings.Contains(out["summary"].(string), "2 files: a.txt, new é.txt") ||
		!strings.HasSuffix(text, "read the other files with the tools]\n") || len(text) > 201_000 {
		t.Errorf("with a file that git does not know: %v, %d", out["summary"], len(text))
	}
	if _, errs := diff("nowhere"); !strings.Contains(errs, "git knows no commit 'nowhere'") {
		t.Errorf("got %s", errs)
	}
	b.commit()
	if out, _ := diff("work"); out["_next"] != "accepted" || !strings.HasPrefix(out["report"].(string), "Nothing has changed since work") {
		t.Errorf("nothing: %v", out)
	}
}

// Gaps are searched once more, unless the user asked for little.
func TestResearchDecides(t *testing.T) {
	b := newBox(t)
	const path = "deep-research/scripts/decide.py"
	for name, c := range map[string]struct{ state, depth, next string }{
		"gaps":         {`{"round": 0, "gaps": ["a", "", "b", "c", "d", "e"]}`, "thorough", "research"},
		"gaps, quick":  {`{"round": 0, "gaps": ["a"]}`, "quick", ""},
		"second round": {`{"round": 1, "gaps": ["a"]}`, "thorough", ""},
		"no gaps":      {`{"round": 0, "gaps": []}`, "thorough", ""},
		"null":         {`{"round": 0, "gaps": null}`, "thorough", ""},
	} {
		out, errs := b.script(path, c.state, "LLM_AGENT_VAR_DEPTH="+c.depth)
		if next, _ := out["_next"].(string); next != c.next || c.next != "" && len(out["questions"].([]any)) != 4 {
			t.Errorf("%s: %v %s", name, out, errs)
		}
	}
}

// A report cites what the run has read.
func TestResearchChecksSources(t *testing.T) {
	b := newBox(t)
	size := 0
	check := func(report, complaints string) map[string]any {
		t.Helper()
		state, err := json.Marshal(map[string]any{"report": report, "complaints": complaints,
			"notes": []any{strings.Repeat("long ", size),
				"A fact (https://a.example/page).", "Another [http://b.example/x_(y)]", map[string]any{"odd": "https://c.example/"}}})
		if err != nil {
			t.Fatal(err)
		}
		out, errs := b.script("deep-research/scripts/check_sources.py", string(state))
		if out == nil {
			t.Fatal(errs)
		}
		return out
	}
	good := "It is so [1], and so [2][3].\n\n## Sources\n[1] A, https://a.example/page\n[2] B, <http://b.example/x_(y>\n[3] https://c.example\n"
	if out := check(good, "none"); len(out) != 0 {
		t.Errorf("a good report: %v", out)
	}
	size = 10_000
	bad := "It is so [1] and [4].\nSources:\n[1] https://a.example/other.\n"
	out := check(bad, "none")
	if out["_next"] != "write" || out["complaints"] != "https://a.example/other is cited, and does not occur in the notes. [4] is cited, and is not among the sources." {
		t.Errorf("a bad report: %v", out)
	}
	out = check(bad, "some")
	if report, _ := out["report"].(string); out["_next"] != nil || !strings.HasSuffix(report, "Not confirmed:\n- https://a.example/other is cited, and does not occur in the notes.\n- [4] is cited, and is not among the sources.") {
		t.Errorf("a bad report again: %v", out)
	}
}
