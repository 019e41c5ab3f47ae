package permission

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/tool"
)

// shellCall decides on a shell text in a workspace, with answers of this run and rules that allow.
func shellCall(t *testing.T, dir, text string, granted, rules []string) Decision {
	t.Helper()
	p := Policy{Workspace: dir}
	for _, g := range granted {
		r, err := ParseRule(g)
		if err != nil {
			t.Fatal(err)
		}
		p.Granted = append(p.Granted, r)
	}
	for _, g := range rules {
		r, err := ParseRule(g)
		if err != nil {
			t.Fatal(err)
		}
		p.Rules = append(p.Rules, Rules{Allow: []Rule{r}})
	}
	shell := tool.Tool{Name: "execute_command", Touches: func(json.RawMessage) (tool.Touch, error) { return tool.Touch{Commands: []string{text}}, nil }}
	d, err := p.Decide(t.Context(), shell, tool.Call{Args: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestAnswersAreBoundToFiles allows commands that run a file, and asks again once the file is another one.
func TestAnswersAreBoundToFiles(t *testing.T) {
	for _, c := range []struct{ command, file, content, other string }{
		{"./run.sh", "run.sh", "echo 1", "echo 2"},
		{"./run.sh --fast x", "run.sh", "echo 1", "echo 2"},
		{"bin/x", "bin/x", "echo 1", "echo 2"},
		{"cd sub && ./run.sh", "sub/run.sh", "echo 1", "echo 2"},
		{"LEVEL=2 ./run.sh", "run.sh", "echo 1", "echo 2"},
		{"env ./run.sh", "run.sh", "echo 1", "echo 2"},
		{"timeout 5 ./run.sh", "run.sh", "echo 1", "echo 2"},
		{"bash run.sh", "run.sh", "echo 1", "echo 2"},
		{"bash -x ./run.sh", "run.sh", "echo 1", "echo 2"},
		{"python3 tools/x.py", "tools/x.py", "print(1)", "print(2)"},
		{"node x.js", "x.js", "1", "2"},
		{". ./run.sh", "run.sh", "echo 1", "echo 2"},
		{"make test", "Makefile", "test: ; true", "test: ; rm x"},
		{"npm test", "package.json", `{"scripts":{"test":"true"}}`, `{"scripts":{"test":"rm x"}}`},
	} {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		testfile.WriteFile(t, filepath.Join(dir, "sub", "keep"), "")
		path := filepath.Join(dir, c.file)
		testfile.WriteFile(t, path, c.content)
		asked := shellCall(t, dir, c.command, nil, nil)
		if asked.Verdict != Ask || len(asked.Grant) == 0 || !asked.Lasting {
			t.Errorf("%s: %v %q", c.command, asked.Verdict, asked.Grant)
			continue
		}
		text, err := AppendRules("permissions.yaml", nil, asked.Grant)
		if err != nil {
			t.Fatal(err)
		}
		if rules, err := LoadRules("permissions.yaml", text); err != nil || len(rules.Allow) != len(asked.Grant) {
			t.Errorf("%s: the file cannot be read: %v\n%s", c.command, err, text)
		}
		for range 2 {
			if d := shellCall(t, dir, c.command, asked.Grant, nil); d.Verdict != Allow {
				t.Errorf("%s asks again: %q", c.command, d.Reasons)
			}
		}
		testfile.WriteFile(t, path, c.other)
		for _, given := range [][2][]string{{asked.Grant, nil}, {nil, asked.Grant}} {
			d := shellCall(t, dir, c.command, given[0], given[1])
			if d.Verdict != Ask || !strings.Contains(fmt.Sprint(d.Reasons), changedContent) {
				t.Errorf("%s with another file: %v %q", c.command, d.Verdict, d.Reasons)
			}
		}
		if d := shellCall(t, dir, c.command, shellCall(t, dir, c.command, asked.Grant, nil).Grant, nil); d.Verdict != Allow {
			t.Errorf("%s, allowed again: %q", c.command, d.Reasons)
		}
		testfile.WriteFile(t, path, c.content)
		if d := shellCall(t, dir, c.command, asked.Grant, nil); d.Verdict != Allow {
			t.Errorf("%s with the old file asks: %q", c.command, d.Reasons)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if d := shellCall(t, dir, c.command, asked.Grant, nil); d.Verdict != Ask {
			t.Errorf("%s without the file: %v", c.command, d.Verdict)
		}
	}
}

// TestRelativeProgramsAreBoundToTheirDirectory runs the same words in other directories.
func TestRelativeProgramsAreBoundToTheirDirectory(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"run.sh", "sub/run.sh", "sub/deep/run.sh"} {
		testfile.WriteFile(t, filepath.Join(dir, name), "echo the same")
	}
	grant := shellCall(t, dir, "./run.sh", nil, nil).Grant
	for _, rules := range [][]string{grant, {"execute_command(./run.sh)"}, {"execute_command(./run.sh *)"}, {"execute_command(./*)"}, {"any command(./run.sh)"}} {
		if d := shellCall(t, dir, "./run.sh", nil, rules); d.Verdict != Allow {
			t.Errorf("%q: in its directory: %q", rules, d.Reasons)
		}
		for _, text := range []string{
			"cd sub && ./run.sh", "pushd sub && ./run.sh", "cd sub; cd deep; ./run.sh", "(cd sub && ./run.sh)", "cd sub && env ./run.sh", "find . -name run.sh -execdir ./run.sh \\;", "f() { ./run.sh; }; cd sub; f",
			"cd sub && bash -c ./run.sh", "popd; ./run.sh",
		} {
			if d := shellCall(t, dir, text, nil, append([]string{"any command(pushd *)", "any command(popd)", "any command(find *)"}, rules...)); d.Verdict != Ask {
				t.Errorf("%q: %s: %v", rules, text, d.Verdict)
			}
		}
	}
	for _, text := range []string{"./none.sh", "$(cat x)/run.sh", "popd; ./run.sh"} {
		if d := shellCall(t, dir, text, nil, nil); d.Verdict != Ask || len(d.Grant) > 0 {
			t.Errorf("%s can be allowed for longer: %q", text, d.Grant)
		}
	}
	for _, rule := range []string{"execute_command", "execute_command(*)"} {
		if d := shellCall(t, dir, "cd sub && ./run.sh", nil, []string{rule}); d.Verdict != Allow {
			t.Errorf("%s: %q", rule, d.Reasons)
		}
	}
}

// TestBoundRules reads rules with a digest.
func TestBoundRules(t *testing.T) {
	const digest = "0123456789abcdef0123456789abcdef"
	for _, text := range []string{"execute_command(./x) @" + digest, "mcp__e__x @" + digest, "mcp_invoke_e(tool=x) @" + digest} {
		r, err := ParseRule(text)
		if err != nil || r.bound != digest || r.Text != text {
			t.Errorf("%s: %+v %v", text, r, err)
		}
	}
	for _, text := range []string{"execute_command(./x) @0123", "execute_command(./x) @" + digest + "0", "mcp__e__x @" + strings.ToUpper(digest), "@" + digest} {
		if r, err := ParseRule(text); err == nil {
			t.Errorf("%s: %+v", text, r)
		}
	}
	p := Policy{Workspace: t.TempDir()}
	grant := []string{"execute_command(./x) @" + digest}
	for _, text := range []string{"execute_command(./x)", "execute_command(./x) @" + strings.Repeat("0", 32)} {
		if p.CheckNarrowed(grant, []string{text}) == nil {
			t.Errorf("%s counts as narrower than %q", text, grant)
		}
	}
}

// TestLargeFilesAreBoundToTheirTime runs a file that is too large to be read for a decision.
func TestLargeFilesAreBoundToTheirTime(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "run.sh")
	testfile.WriteFile(t, path, "echo 1")
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	set := func(size int64, at time.Time) {
		t.Helper()
		if err := errors.Join(os.Truncate(path, size), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	set(largestContent+1, at)
	asked := shellCall(t, dir, "./run.sh", nil, nil)
	if asked.Verdict != Ask || len(asked.Grant) != 1 || !IsBound(asked.Grant[0]) {
		t.Fatalf("%v %q", asked.Verdict, asked.Grant)
	}
	for _, c := range []struct {
		name string
		size int64
		at   time.Time
		want Verdict
	}{
		{"the same file", largestContent + 1, at, Allow},
		{"another time", largestContent + 1, at.Add(time.Second), Ask},
		{"another size", largestContent + 2, at, Ask},
	} {
		set(c.size, c.at)
		if d := shellCall(t, dir, "./run.sh", asked.Grant, nil); d.Verdict != c.want {
			t.Errorf("%s: %v %q, want %v", c.name, d.Verdict, d.Reasons, c.want)
		}
	}
}
