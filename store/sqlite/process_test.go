package sqlite_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/store/sqlite"
)

// The tests of this file run their own binary again as other processes, which
// this variable tells what to do.
const roleVar = "RADDLE_SQLITE_TEST_ROLE"

var roles = map[string]func(path, name string) error{"race": raceRole, "append": appendRole, "resume": resumeRole, "drive": driveRole, "stay": stayRole}

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
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), exe, args...)
	c.Env = append(os.Environ(), roleVar+"="+role)
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
	for rec, err := range s.Read(context.Background(), thread, graph.Range{Newest: true, Limit: 1, Heads: true}) {
		return rec.Seq, err
	}
	return 0, nil
}

// mark is a batch of n records, each of which says whose it is and where it belongs.
func mark(name string, after int64, n int) []graph.Record {
	l := make([]graph.Record, n)
	for i := range l {
		l[i] = graph.Record{Kind: graph.KindStep, Head: fmt.Appendf(nil, "%s %d", name, after+int64(i)+1), Data: bytes.Repeat([]byte(name), 50)}
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
		case !errors.Is(err, graph.ErrConflict):
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
	for rec, err := range open(t, path).Read(t.Context(), "t", graph.Range{}) {
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
		for rec, err := range s.Read(t.Context(), "t", graph.Range{}) {
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
