package team_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/store/sqlite"
)

// childDir names, in the environment of a copy of the test binary, the directory
// in which it is to run a team.
const childDir = "RADDLE_TEAM_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child runs a team, or continues with it, in a database of its own, and says on
// standard output what its models are asked.
func child(dir string) error {
	st, err := sqlite.Open(filepath.Join(dir, "runs.db"))
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }() // a journal is durable before it is used
	s := newStage()
	s.told = os.Stdout
	g, err := four(s).Compile()
	if err != nil {
		return err
	}
	res, _, err := toTheEnd(context.Background(), &graph.Runner{Graph: g, Store: st})
	fmt.Println(res.Status, agent.LastResponse(res.State))
	return err
}

// heard starts the child and kills it at one of its lines, from 1; 0: never.
func heard(t *testing.T, dir string, killAt int) (said []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		said = append(said, lines.Text())
		if len(said) == killAt {
			_ = cmd.Process.Kill() // it may have ended
		}
	}
	if err := cmd.Wait(); err != nil && killAt == 0 {
		t.Fatalf("%v, it said %q", err, said)
	}
	return said
}

// A process with several agents running is killed with SIGKILL, and another goes
// on: no reply that has led to another request is asked for again.
func TestKilled(t *testing.T) {
	whole := heard(t, t.TempDir(), 0)
	for _, at := range []int{2, 5, 8, 11, 15} {
		t.Run(strconv.Itoa(at), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			before, after := heard(t, dir, at), heard(t, dir, 0)
			for _, line := range before {
				end := strings.LastIndexByte(line, '/')
				round, err := strconv.Atoi(line[end+1:])
				if !strings.HasPrefix(line, "request ") || err != nil {
					continue
				}
				next := line[:end+1] + strconv.Itoa(round+1)
				if slices.Contains(before, next) && slices.Contains(after, line) {
					t.Errorf("%q was made before the kill, and again after it", line)
				}
			}
			if got, want := after[len(after)-1], whole[len(whole)-1]; got != want || !strings.HasPrefix(got, "done ") {
				t.Errorf("it ended with %s, want %s", got, want)
			}
		})
	}
}
