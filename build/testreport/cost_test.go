package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestMain runs a test binary as testreport -run, or as a program that it may run.
func TestMain(m *testing.M) {
	switch os.Getenv("TESTREPORT_AS") {
	case "run":
		os.Unsetenv("TESTREPORT_AS")
		os.Exit(runMeasured(os.Args[1:]))
	default:
		os.Exit(m.Run())
	}
}

func TestCosts(t *testing.T) {
	const in = `{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"testreport: the processors took 1.5s\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t4.1s\n"}
{"Action":"pass","Package":"p","Elapsed":4.25}
{"Action":"pass","Package":"q","Test":"TestA","Elapsed":3}
{"Action":"output","Package":"q","Output":"testreport: the processors took 2.25s\n"}
{"Action":"pass","Package":"q","Elapsed":3}
{"Action":"skip","Package":"r","Elapsed":0}
`
	var out strings.Builder
	_, c, err := report(strings.NewReader(in), &out)
	if err != nil {
		t.Fatal(err)
	}
	if want := "ok  \tp\t4.1s\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
	const table = "    2.25     3.00 q\n    1.50     4.25 p\n"
	if got := c.table(); got != table {
		t.Errorf("table:\n%swant:\n%s", got, table)
	}
	if got, want := c.summary(), "seconds of the processors, seconds on a clock (all packages: 4, 7):\n"+table; got != want {
		t.Errorf("summary:\n%swant:\n%s", got, want)
	}
	if err := c.check(0); err != nil {
		t.Error(err)
	}
	if err := c.check(2); err == nil || !strings.Contains(err.Error(), "the tests of q took 2 seconds") {
		t.Errorf("check = %v", err)
	}
}

func TestSummaryNamesTenPackages(t *testing.T) {
	c := costs{}
	for _, pkg := range strings.Fields("a b c d e f g h i j k") {
		c[pkg] = cost{wall: time.Second}
	}
	if got := strings.Count(c.summary(), "\n"); got != 11 {
		t.Errorf("%d lines:\n%s", got, c.summary())
	}
	if got := (costs{}).summary(); got != "" {
		t.Errorf("without a package: %q", got)
	}
}

// TestRunMeasured runs a program that fails, and one that a signal ends.
func TestRunMeasured(t *testing.T) {
	sh, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	for script, want := range map[string]struct {
		out  string
		code int
	}{
		"echo one; exit 0": {"one\n", 0},
		"echo two; exit 3": {"two\n", 3},
		"kill -KILL $$":    {"", 2},
		"cat; echo \"$0\"": {"inputname\n", 0},
		"trap 'echo asked; exit 4' QUIT; while :; do kill -QUIT $PPID; sleep 0.1; done": {"asked\n", 4},
	} {
		c := exec.Command(os.Args[0], sh, "-c", script, "name")
		c.Env = append(os.Environ(), "TESTREPORT_AS=run")
		c.Stdin = strings.NewReader("input")
		out, _ := c.Output()
		first, line, ok := strings.Cut(string(out), said)
		if first != want.out || c.ProcessState.ExitCode() != want.code {
			t.Errorf("%s: printed %q, exit code %d, want %q, %d", script, out, c.ProcessState.ExitCode(), want.out, want.code)
		}
		if _, err := time.ParseDuration(strings.TrimSpace(line)); !ok || err != nil {
			t.Errorf("%s: the last line is %q (%v)", script, line, err)
		}
	}
}
