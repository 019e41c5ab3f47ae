//go:build unix

package testrun

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"raddle.dev/internal/proving/testcase"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
)

// countCrashes returns a number that RADDLE_CRASHES replaces.
func countCrashes(t *testing.T, usual int) int {
	t.Helper()
	text := os.Getenv("RADDLE_CRASHES")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// crashAll kills the cases of files everywhere, and returns the number of crash points.
func crashAll(t *testing.T, r *Runner, files ...string) (points int) {
	t.Helper()
	for _, path := range files {
		f, err := testcase.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range f.Cases {
			found, err := r.RunCrashes(t.Context(), c, 0)
			if err != nil {
				t.Fatal(err)
			}
			if !found.HasPassed() || found.Points == 0 || found.Missed > found.Points/10 { // what agents of a team do at the same time depends on timing
				t.Errorf("%s, %s: %d points, %d missed, %s %+v", path, c.Name, found.Points, found.Missed, found.Reason, found.Differences)
			}
			points += found.Points
		}
	}
	return points
}

// TestCrashesOfOurAgents kills runs of the examples and of the agents that come with raddle: a few, or all with RADDLE_CRASHES.
func TestCrashesOfOurAgents(t *testing.T) {
	testneed.RequirePrograms(t, "bash", "python3")
	files := []string{"../../../examples/triage/triage.test.yaml", "../../../examples/map-reduce/map-reduce.test.yaml", "../../../examples/hello/hello.test.yaml", "../../../examples/leave/leave.test.yaml", "../../process/bundle/agents/assistant/assistant.test.yaml"}
	if os.Getenv("RADDLE_CRASHES") != "" {
		var err error
		if files, err = FindFiles([]string{"../../../examples", "../../process/bundle/agents"}); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d files, %d crash points", len(files), crashAll(t, newRunner(t), files...))
}

// A script that is not idempotent is named, and nothing else.
func TestCrashNamesTheScript(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{
		"graph.yaml": "name: pay\nworking_dir: agent\nstart: count\nnodes:\n  count: {type: script, script: count.sh, next: pay}\n" +
			"  pay: {type: script, script: pay.sh, next: end}\n  end: {type: end, output: paid}\n",
		"count.sh":     "echo '{\"n\": 1}'\n",
		"pay.sh":       "echo paid >> ledger.txt\necho '{}'\n",
		"p.test.yaml":  "tests:\n  - name: pays once\n    expect: {output: paid}\n",
		"other/x.yaml": "x: y\n",
	})
	f, err := testcase.Load(filepath.Join(dir, "p.test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found, err := newRunner(t).RunCrashes(t.Context(), f.Cases[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Differences) == 0 {
		t.Fatalf("nothing was found at %d points: %s", found.Points, found.Reason)
	}
	for _, d := range found.Differences {
		if !strings.Contains(fmt.Sprint(d.What), "ledger.txt has 2 lines, and without a crash 1") || !strings.HasPrefix(d.Cause, "the script pay.sh of node pay ran twice") {
			t.Errorf("%+v", d)
		}
	}
}

// Of scripts that work at the same time, only the one that is not idempotent is named, and its gap is found in whatever order they are saved.
func TestCrashNamesOneOfSeveral(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{
		"graph.yaml": "name: pay\nworking_dir: agent\nstart: begin\nnodes:\n  begin: {type: script, script: none.sh, next: [count, pay, other]}\n" +
			"  count: {type: script, script: none.sh, state_updates: {c: \"1\"}, next: end}\n  pay: {type: script, script: pay.sh, state_updates: {p: \"1\"}, next: end}\n" +
			"  other: {type: script, script: none.sh, state_updates: {o: \"1\"}, next: end}\n  end: {type: end, output: paid}\n",
		"none.sh":     "echo '{}'\n",
		"pay.sh":      "echo paid >> ledger.txt\necho '{}'\n",
		"p.test.yaml": "tests:\n  - name: pays once\n    expect: {output: paid}\n",
	})
	f, err := testcase.Load(filepath.Join(dir, "p.test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	scratch := t.TempDir()
	r := newRunner(t)
	r.Temp = scratch
	for range 3 {
		found, err := r.RunCrashes(t.Context(), f.Cases[0], 0)
		if err != nil {
			t.Fatal(err)
		}
		gap := 0
		for _, d := range found.Differences {
			// A busy machine may have started another script as well when the run was killed: then the cause names both.
			if !strings.Contains(d.Cause, "the script pay.sh of node pay") || !strings.Contains(d.Cause, " ran twice") {
				t.Errorf("%+v", d)
			}
			if strings.HasPrefix(d.Point, "before") && strings.Contains(d.Point, "(effect 1.pay.0 script 0)") {
				gap++
			}
		}
		// It can be found twice: a run that is killed at the record of another node may save the effect together with that record.
		if gap < 1 || found.Missed != 0 {
			t.Errorf("the gap of pay was found %d times, %d points were missed: %+v", gap, found.Missed, found.Differences)
		}
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// A run whose failure was saved has ended with this failure: to resume it would be a person's decision to try again.
func TestCrashAfterAFailure(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{
		"graph.yaml":  "name: pay\nworking_dir: agent\nstart: pay\nnodes:\n  pay: {type: script, script: pay.sh}\n  end: {type: end, output: paid}\n",
		"pay.sh":      "echo paid >> ledger.txt\necho no funds >&2\nexit 1\n",
		"p.test.yaml": "tests:\n  - name: fails\n    expect: {error: {contains: no funds}}\n",
	})
	f, err := testcase.Load(filepath.Join(dir, "p.test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found, err := newRunner(t).RunCrashes(t.Context(), f.Cases[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	before := 0
	for _, d := range found.Differences {
		if strings.HasPrefix(d.Point, "after") && strings.Contains(d.Point, "(end failed)") {
			t.Errorf("a run that has ended was resumed: %+v", d)
		}
		if strings.HasPrefix(d.Cause, "the script pay.sh of node pay ran twice") {
			before++
		}
	}
	if before == 0 {
		t.Errorf("the gap before the failure was not found: %d points, %s", found.Points, found.Reason)
	}
}

// A long value is shown from where it differs.
func TestQuoteDifference(t *testing.T) {
	long := strings.Repeat("é", 500)
	x, y := quoteDifference(long+"1"+long, long+"2")
	if want := `"…` + long[:2*30] + `2"`; y != want {
		t.Errorf("got %s, want %s", y, want)
	}
	if !strings.HasPrefix(x, `"…`+long[:2*30]+"1é") || !strings.HasSuffix(x, `é…"`) {
		t.Errorf("got %s", x)
	}
	if x, y := quoteDifference("a\x1b[2J", ""); x != `"a\x1b[2J"` || y != `""` {
		t.Errorf("got %s and %s", x, y)
	}
}

// TestCrashesOfRandomGraphs kills the runs of random graphs everywhere: 3, or as many as RADDLE_CRASHES says.
func TestCrashesOfRandomGraphs(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	r, points := newRunner(t), 0
	for seed := range countCrashes(t, 3) {
		dir := filepath.Join(t.TempDir(), "random")
		testfile.WriteRandomGraph(t, dir, uint64(seed))
		if points += crashAll(t, r, filepath.Join(dir, "r.test.yaml")); t.Failed() {
			text, _ := os.ReadFile(filepath.Join(dir, "graph.yaml"))
			t.Fatalf("seed %d:\n%s", seed, text)
		}
	}
	t.Logf("%d crash points", points)
}

// plantDefect writes an overlay for go build in which a source file has a text behind another one, and returns the path of the overlay. The sources stay as
// they are.
func plantDefect(t *testing.T, dir, source, behind, text string) (overlay string) {
	t.Helper()
	path, err := filepath.Abs(source)
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(code), behind) != 1 {
		t.Fatalf("%s does not have %q once", source, behind)
	}
	changed := filepath.Join(dir, "changed.go")
	testfile.WriteFile(t, changed, strings.Replace(string(code), behind, behind+text, 1))
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	testfile.WriteFile(t, overlay, string(list))
	return overlay
}

// TestExtraPlantedDefect builds raddle with an engine that forgets recorded effects: the crash test must find it.
func TestExtraPlantedDefect(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "raddle")
	defect := plantDefect(t, dir, "../../../graph/effect.go", "func (c *effectCall) recordedResult() ([]byte, bool) {\n", "\tif c != nil {\n\t\treturn nil, false\n\t}\n")
	// with the flags of make build, so that only what imports the defect is compiled again
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-overlay", defect, "-o", program, "raddle.dev/cmd/raddle")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	agent, err := filepath.Abs("../../../examples/triage")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, "test", "--crash", "--output", "json", "--run", "a person does not agree", agent)
	c.Env = append(os.Environ(), "HOME="+dir)
	out, err := c.Output()
	var report CrashReport
	if decoded := json.Unmarshal(out, &report); decoded != nil || err == nil || report.OK {
		t.Fatalf("the defect is not found: %v %v %s", err, decoded, out)
	}
	if text := string(out); !strings.Contains(text, "ran again although its result was saved") {
		t.Errorf("the effects are not named: %s", text)
	}
}
