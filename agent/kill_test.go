package agent_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/store/sqlite"
	"raddle.dev/tool"
)

// childDir names, in the environment of a copy of the test binary, the directory
// in which it is to run an agent.
const childDir = "RADDLE_AGENT_TEST_DIR"

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

// child runs an agent, or resumes it, in a database of its own. It says on
// standard output where it is, and waits there for a line on standard input.
func child(dir string) error {
	in := bufio.NewReader(os.Stdin)
	at := func(place string) error {
		fmt.Println(place)
		_, err := in.ReadString('\n')
		return err
	}
	st, err := sqlite.Open(filepath.Join(dir, "runs.db"))
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }() // a journal is durable before it is used
	note := func(c tool.Call) error {
		f, err := os.OpenFile(filepath.Join(dir, "calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintln(f, c.ID, c.Key)
			err = errors.Join(err, f.Close())
		}
		return err
	}
	work := func(name string, e tool.Effect) tool.Tool {
		return tool.Tool{Name: name, Effect: e, Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
			if err := at("begin " + c.ID); err != nil {
				return tool.Result{}, err
			}
			if err := note(c); err != nil {
				return tool.Result{}, err
			}
			return tool.TextResult("did " + c.ID), at("end " + c.ID)
		}}
	}
	config := agent.Config{Model: childModel(at), Tools: []tool.Tool{work("read", tool.ReadOnly), work("send", tool.Undeclared)}}
	g, err := config.Compile()
	if err != nil {
		return err
	}
	r := &graph.Runner{Graph: g, Store: st}
	ctx := context.Background()
	res, err := r.InvokeResume(ctx, graph.Resume{Thread: "t"})
	if errors.Is(err, journal.ErrNoThread) {
		res, err = r.Invoke(ctx, graph.Input{Thread: "t", Set: agent.Turn("Go.")})
	}
	for err == nil && res.Status == graph.Waiting {
		var answers []graph.Answer
		for _, q := range res.Questions {
			var d agent.CallData
			if err := json.Unmarshal(q.Data, &d); err != nil {
				return err
			}
			fmt.Println("asked", d.ID)
			answers = append(answers, graph.Answer{ID: q.ID, Value: "skip"})
		}
		res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t", Answers: answers})
	}
	if err == nil {
		fmt.Println(res.Status, agent.LastResponse(res.State))
		for _, line := range shape(agent.History(res.State)) {
			fmt.Println("|", line)
		}
	}
	return err
}

// childModel asks for five calls and is content then.
func childModel(at func(string) error) llm.Model {
	return agent.ModelFunc(func(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			m := say("All done.")
			if len(r.Messages) == 1 {
				m = both(say("I begin."), call("c1", "read", "{}"), call("c2", "send", "{}"), call("c3", "read", "{}"), call("c4", "send", "{}"), call("c5", "read", "{}"))
			}
			if err := at(fmt.Sprint("model ", len(r.Messages))); err != nil {
				yield(llm.Delta{}, err)
				return
			}
			yield(llm.Delta{Done: &llm.Reply{Message: m}}, nil)
		}
	})
}

// drive starts the child, lets it go from place to place, and kills it at the
// given one. It returns what the child said.
func drive(t *testing.T, dir, killAt string) (said []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		said = append(said, lines.Text())
		if lines.Text() == killAt {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			killed = true
			break
		}
		if _, err := io.WriteString(stdin, "\n"); err != nil {
			break // it has ended
		}
	}
	if err := cmd.Wait(); killed == (err == nil) {
		t.Errorf("killed: %v, error %v", killed, err)
	}
	return said
}

// TestKilled kills a process with SIGKILL before, in and after each of five calls
// and around both model calls, and has another process continue.
func TestKilled(t *testing.T) {
	places := []string{"model 1", "model 3"}
	for i := range 5 {
		places = append(places, fmt.Sprint("begin c", i+1), fmt.Sprint("end c", i+1))
	}
	for _, place := range places {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			before := drive(t, dir, place)
			after := drive(t, dir, "never")
			checkKilled(t, place, before, after)
			calls, err := os.ReadFile(filepath.Join(dir, "calls"))
			if err != nil {
				t.Fatal(err)
			}
			keys := map[string]string{}
			for line := range strings.Lines(string(calls)) {
				id, key, _ := strings.Cut(strings.TrimSpace(line), " ")
				if was, again := keys[id]; again && was != key || key == "" {
					t.Errorf("the key of %s was %q and is %q", id, was, key)
				}
				keys[id] = key
			}
		})
	}
}

func checkKilled(t *testing.T, place string, before, after []string) {
	kind, id, _ := strings.Cut(place, " ")
	for _, line := range before[:len(before)-1] { // everything before the place was recorded
		if slices.Contains(after, line) && (strings.HasPrefix(line, "begin") || strings.HasPrefix(line, "model")) && !strings.HasSuffix(line, id) {
			t.Errorf("%q happened before the kill and again after it", line)
		}
	}
	sends := kind != "model" && (id == "c2" || id == "c4")
	if asked := slices.Contains(after, "asked "+id); asked != sends {
		t.Errorf("asked about %s: %v", id, asked)
	}
	if again := slices.Contains(after, "begin "+id); kind != "model" && again == sends {
		t.Errorf("%s ran again: %v", id, again)
	}
	i := slices.Index(after, "done All done.")
	if i < 0 {
		t.Fatalf("the second process said %q", after)
	}
	outcomes := 0
	for _, line := range after[i:] {
		if strings.HasPrefix(line, "| result ") {
			outcomes++
			if cut := strings.Contains(line, "cut off"); cut != (sends && strings.Contains(line, " "+id+":")) {
				t.Errorf("outcome %q", line)
			}
		}
	}
	if outcomes != 5 {
		t.Errorf("%d outcomes: %q", outcomes, after[i:])
	}
}
