package sqlite_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/store/sqlite"
)

// The tests of this file run their own binary again as other processes, and this variable says what
// they do.
const roleVar = "RADDLE_SQLITE_TEST_ROLE"

var roles = map[string]func(path, name string) error{"race": raceRole, "append": appendRole, "resume": resumeRole, "drive": driveRole, "stay": stayRole, "pay": payRole}

func TestMain(m *testing.M) {
	f := roles[os.Getenv(roleVar)]
	if f == nil {
		os.Exit(m.Run())
	}
	if err := f(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// start runs a role in another process.
func start(t *testing.T, role string, args ...string) (*exec.Cmd, *bufio.Scanner, *bytes.Buffer) {
	t.Helper()
	return startReading(t, nil, role, args...)
}

// startReading is start for a process that reads a file.
func startReading(t *testing.T, in *os.File, role string, args ...string) (*exec.Cmd, *bufio.Scanner, *bytes.Buffer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), exe, args...)
	c.Env = append(os.Environ(), roleVar+"="+role)
	if in != nil {
		c.Stdin = in
	}
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewScanner(out), &stderr
}

const raced = 300 // records

// head returns the newest Seq of a thread.
func head(s *sqlite.Store, thread string) (int64, error) {
	for rec, err := range s.Read(context.Background(), thread, journal.Range{Newest: true, Limit: 1, Heads: true}) {
		return rec.Seq, err
	}
	return 0, nil
}

// mark is a batch of n records, each of which says whose it is and where it belongs.
func mark(name string, after int64, n int) []journal.Record {
	l := make([]journal.Record, n)
	for i := range l {
		l[i] = journal.Record{Kind: journal.KindStep, Head: fmt.Appendf(nil, "%s %d", name, after+int64(i)+1), Data: bytes.Repeat([]byte(name), 50)}
	}
	return l
}

// raceRole appends wherever it finds the head, and prints what it has won.
func raceRole(path, name string) error {
	s, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	for {
		at, err := head(s, "t")
		if err != nil {
			return err
		}
		if at >= raced {
			return s.Close()
		}
		switch err := s.Append(context.Background(), "t", at, mark(name, at, 1)); {
		case err == nil:
			fmt.Println(at + 1)
		case !errors.Is(err, journal.ErrConflict):
			return err
		}
	}
}

func TestProcessesRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	wins := make([][]string, 3)
	var wg sync.WaitGroup
	for i := range wins {
		c, out, stderr := start(t, "race", path, fmt.Sprint("p", i))
		wg.Go(func() {
			for out.Scan() {
				wins[i] = append(wins[i], out.Text())
			}
			if err := c.Wait(); err != nil {
				t.Errorf("process %d: %v\n%s", i, err, stderr)
			}
		})
	}
	wg.Wait()
	winner := map[string]string{}
	for i, seqs := range wins {
		t.Logf("process %d has won %d times", i, len(seqs))
		for _, seq := range seqs {
			if winner[seq] != "" {
				t.Errorf("record %s was acknowledged to two processes", seq)
			}
			winner[seq] = fmt.Sprint("p", i)
		}
	}
	n := 0
	for rec, err := range open(t, path).Read(t.Context(), "t", journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		seq := fmt.Sprint(rec.Seq)
		if want := winner[seq] + " " + seq; rec.Seq != int64(n) || string(rec.Head) != want {
			t.Errorf("record %d is %q, want record %d, %q", rec.Seq, rec.Head, n, want)
		}
	}
	if n != raced || len(winner) != raced {
		t.Errorf("%d records, %d acknowledged, want %d", n, len(winner), raced)
	}
}

// appendRole appends batches of changing sizes behind the head for ever, and
// prints the head after each.
func appendRole(path, name string) error {
	s, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	at, err := head(s, "t")
	for n := 1; err == nil; n = n%90 + 1 {
		if err = s.Append(context.Background(), "t", at, mark(name, at, n)); err == nil {
			at += int64(n)
			fmt.Println(at)
		}
	}
	return err
}

func TestKilledWhileAppending(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path)
	var acked int64
	for round := range 6 {
		c, out, stderr := start(t, "append", path, "p")
		for lines := 0; out.Scan(); lines++ {
			seq, err := strconv.ParseInt(out.Text(), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if acked = seq; lines == 40*round+7 {
				if err := c.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := c.Wait(); err == nil || stderr.Len() > 0 {
			t.Fatalf("the process should have been killed: %v\n%s", err, stderr)
		}
		if round%2 == 1 { // with and without another process that has the file open
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, path)
		}
		var n int64
		for rec, err := range s.Read(t.Context(), "t", journal.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			if want := mark("p", n-1, 1)[0]; rec.Seq != n || !bytes.Equal(rec.Head, want.Head) || !bytes.Equal(rec.Data, want.Data) {
				t.Fatalf("record %d is %q, want record %d, %q", rec.Seq, rec.Head, n, want.Head)
			}
		}
		if n < acked {
			t.Errorf("%d records of %d acknowledged ones", n, acked)
		}
	}
	if acked == 0 {
		t.Error("nothing was appended")
	}
}

// A child is another process that drives runs in the same file, and continues when the test says
// so.
type child struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	stderr bytes.Buffer
}

func spawn(t *testing.T, role, path string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: exec.CommandContext(t.Context(), exe, path, "")}
	c.cmd.Env = append(os.Environ(), roleVar+"="+role)
	c.cmd.Stderr = &c.stderr
	in, err1 := c.cmd.StdinPipe()
	out, err2 := c.cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	c.in, c.out = in, bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// says reads one line.
func (c *child) says(t *testing.T, want string) {
	t.Helper()
	if !c.out.Scan() || c.out.Text() != want {
		t.Fatalf("the process says %q, want %q: %v\n%s", c.out.Text(), want, c.cmd.Wait(), &c.stderr)
	}
}

// goOn releases a process that waits, and returns the rest of what it says.
func (c *child) goOn(t *testing.T) (lines []string) {
	t.Helper()
	if _, err := io.WriteString(c.in, "go on\n"); err != nil {
		t.Error(err)
	}
	for c.out.Scan() {
		lines = append(lines, c.out.Text())
	}
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &c.stderr)
	}
	return lines
}

// held is a store whose first append waits until the test lets the process continue: by then its
// drive has read the thread.
type held struct {
	journal.Store
	once sync.Once
	err  error
}

func (h *held) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	h.once.Do(func() {
		fmt.Println("loaded")
		_, h.err = bufio.NewReader(os.Stdin).ReadString('\n')
	})
	if h.err != nil {
		return h.err
	}
	return h.Store.Append(ctx, thread, after, recs)
}

var answers = graph.Append[string]("answers")

// asking is a graph of two tasks that ask and a node behind them.
func asking() (*graph.Graph, error) {
	ask := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		a, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "well?"})
		return graph.Put(answers.Set([]string{a})), err
	}
	return graph.Compile(graph.Def{Name: "asking", Keys: []graph.AnyKey{answers}, Start: []string{"a", "b"}, Nodes: []graph.Node{
		{Name: "a", Run: ask}, {Name: "b", Run: ask},
		{Name: "end", Run: func(context.Context, graph.State) (graph.Update, error) {
			return graph.Put(answers.Set([]string{"end"})), nil
		}},
	}, Edges: []graph.Edge{{From: []string{"a", "b"}, To: []string{"end"}}, {From: []string{"end"}, To: []string{graph.End}}}})
}

// resumeRole answers both questions, when the test says so.
func resumeRole(path, _ string) error {
	s, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	g, err := asking()
	if err != nil {
		return err
	}
	me := fmt.Sprint(os.Getpid())
	res, err := (&graph.Runner{Graph: g, Store: &held{Store: s}}).InvokeResume(context.Background(),
		graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: "a", Value: me}, {ID: "b", Value: me}}})
	switch {
	case errors.Is(err, journal.ErrConflict):
		fmt.Println("conflict")
	case err != nil:
		return err
	default:
		fmt.Println(res.Status, strings.Join(answers.Get(res.State), " "))
	}
	return s.Close()
}

// Of two processes that have read the same thread and both answer it, exactly one continues; the
// other gets an error, and has written nothing.
func TestOneOfTwoProcessesResumes(t *testing.T) {
	g, err := asking()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		path := filepath.Join(t.TempDir(), "runs.db")
		s := open(t, path)
		if res, err := (&graph.Runner{Graph: g, Store: s}).Invoke(t.Context(), graph.Input{Thread: "t"}); err != nil || res.Status != graph.Waiting {
			t.Fatal(res.Status, err)
		}
		children := [2]*child{spawn(t, "resume", path), spawn(t, "resume", path)}
		for _, c := range children {
			c.says(t, "loaded")
		}
		var said [2][]string
		var wg sync.WaitGroup
		for i, c := range children {
			wg.Go(func() { said[i] = c.goOn(t) })
		}
		wg.Wait()
		winner := slices.IndexFunc(said[:], func(l []string) bool { return len(l) == 1 && l[0] != "conflict" })
		if winner < 0 {
			t.Fatalf("nobody won: %q", said)
		}
		pid := fmt.Sprint(children[winner].cmd.Process.Pid)
		want := [2][]string{{"conflict"}, {"conflict"}}
		want[winner] = []string{"done " + pid + " " + pid + " end"}
		if d := cmp.Diff(want, said); d != "" {
			t.Error(d)
		}
		state, err := (&graph.Runner{Graph: g, Store: s}).State(t.Context(), "t", 0)
		if d := cmp.Diff([]string{pid, pid, "end"}, answers.Get(state)); err != nil || d != "" {
			t.Errorf("%v\n%s", err, d)
		}
	}
}

var part = graph.Last[int]("part")

// working is a graph that sends three tasks with a part each. What happens in the world is a line
// of a file. With a pause, the second task stops between its first effect and its second, which has
// started.
func working(world string, pause func()) (*graph.Graph, error) {
	do := func(ctx context.Context, what string, more func()) error {
		_, err := graph.Do(ctx, what, func(context.Context) (int, error) {
			f, err := os.OpenFile(world, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return 0, err
			}
			_, err = fmt.Fprintln(f, what)
			more()
			return 0, errors.Join(err, f.Close())
		})
		return err
	}
	return graph.Compile(graph.Def{Name: "working", Keys: []graph.AnyKey{answers, part}, Concurrency: 1, Start: []string{"split"}, Nodes: []graph.Node{
		{Name: "split", Routes: []string{"work"}, Run: func(ctx context.Context, _ graph.State) (u graph.Update, err error) {
			for i := range 3 {
				u.Send = append(u.Send, graph.Send{To: "work", Overlay: []graph.Write{part.Set(i + 1)}})
			}
			return u, do(ctx, "split", func() {})
		}},
		{Name: "work", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			more := func() {}
			if part.Get(s) == 2 {
				more = pause
			}
			err := errors.Join(do(ctx, fmt.Sprint("first ", part.Get(s)), func() {}), do(ctx, fmt.Sprint("second ", part.Get(s)), more))
			return graph.Put(answers.Set([]string{fmt.Sprint(part.Get(s))})), err
		}},
	}, Edges: []graph.Edge{{From: []string{"work"}, To: []string{graph.End}}}})
}

// driveRole works until it is killed.
func driveRole(path, _ string) error {
	s, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	g, err := working(path+".world", func() {
		fmt.Println("in the middle")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // no process writes
	})
	if err != nil {
		return err
	}
	_, err = (&graph.Runner{Graph: g, Store: s}).Invoke(context.Background(), graph.Input{Thread: "t"})
	return err
}

// A process that is killed in the middle of an effect is followed by another:
// what was recorded is not done again, and no task nor its overlay is lost.
func TestAKilledRunContinuesElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	c := spawn(t, "drive", path)
	c.says(t, "in the middle")
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err == nil {
		t.Fatal("the process was not killed")
	}
	s := open(t, path)
	if info, err := history.Inspect(t.Context(), s, "t", 0); err != nil || info.Status != graph.Crashed || !slices.Equal(info.Next, []string{"work"}) {
		t.Errorf("%v, next %v, %v", info.Status, info.Next, err)
	}
	g, err := working(path+".world", func() {})
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&graph.Runner{Graph: g, Store: s}).InvokeResume(t.Context(), graph.Resume{Thread: "t"})
	if d := cmp.Diff([]string{"1", "2", "3"}, answers.Get(res.State)); err != nil || res.Status != graph.Done || d != "" {
		t.Errorf("%v, %v\n%s", res.Status, err, d)
	}
	world, err := os.ReadFile(path + ".world")
	if err != nil {
		t.Fatal(err)
	}
	want := "split, first 1, second 1, first 2, second 2, second 2, first 3, second 3"
	if got := strings.ReplaceAll(strings.TrimSpace(string(world)), "\n", ", "); got != want {
		t.Errorf("the world has seen %s\nwant %s", got, want)
	}
}

// staying is a graph of one node whose effect waits until it may continue.
func staying(wait func()) (*graph.Graph, error) {
	return graph.Compile(graph.Def{Name: "staying", Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Do(ctx, "effect", func(context.Context) (int, error) { wait(); return 1, nil })
		return graph.Update{}, err
	}}}, Edges: []graph.Edge{{From: []string{"a"}, To: []string{graph.End}}}})
}

// stayRole drives a run that does not end.
func stayRole(path, _ string) error {
	s, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	g, err := staying(func() {
		fmt.Println("in the effect")
		time.Sleep(time.Hour)
	})
	if err != nil {
		return err
	}
	_, err = (&graph.Runner{Graph: g, Store: s}).Invoke(context.Background(), graph.Input{Thread: "t"})
	return err
}

// A run that another process drives is busy; once that process is killed the run has crashed, at
// once, even before another process has waited for it.
func TestTheLeaseOfAKilledProcess(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" && runtime.GOOS != "windows" {
		t.Skip("whether a process has ended is not known on this system: its lease expires")
	}
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path)
	g, err := staying(func() {})
	if err != nil {
		t.Fatal(err)
	}
	r := &graph.Runner{Graph: g, Store: s}
	for round := range 3 {
		if err := s.Prune(t.Context(), "t", 1<<30); err != nil {
			t.Fatal(err)
		}
		c := spawn(t, "stay", path)
		c.says(t, "in the effect")
		_, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
		var busy *graph.BusyError
		if !errors.As(err, &busy) {
			t.Fatalf("round %d: while it is driven: %v", round, err)
		}
		if _, pid, ok := busy.Lease.Holder(); !ok || pid != c.cmd.Process.Pid || !strings.Contains(err.Error(), fmt.Sprint("process ", pid)) {
			t.Errorf("%v; want process %d", err, c.cmd.Process.Pid)
		}
		if i := listed(t, s); i.Status != graph.Running {
			t.Errorf("while it is driven it is %v", i.Status)
		}
		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(10 * time.Second); listed(t, s).Status != graph.Crashed; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("after kill -9 it is %v", listed(t, s).Status)
			}
		}
		res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
		if err != nil || res.Status != graph.Done {
			t.Errorf("after kill -9: %v, %v", res.Status, err)
		}
		_ = c.cmd.Wait() // it was killed
	}
}

func listed(t *testing.T, s journal.Store) (i history.RunInfo) {
	t.Helper()
	for info, err := range s.Threads(t.Context(), "") {
		if err == nil {
			i, err = history.Describe(info)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return i
}
