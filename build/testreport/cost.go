package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A cost is what the tests of a package took, without what it took to compile them.
type cost struct {
	// of all processors, for the tests and the programs that they waited for; 0 if -run did not run the tests
	cpu  time.Duration
	wall time.Duration // until the last of them ended
}

// costs are what packages took, by import path.
type costs map[string]cost

// said begins the line that runMeasured adds to the output of a program.
const said = "testreport: the processors took "

// runMeasured runs a program with the files and signals of this one, and prints what it took. It returns the exit code
// of the program.
func runMeasured(args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "testreport: -run needs a program: testreport -run PROGRAM ARGUMENTS...")
		return 2
	}
	c := exec.Command(args[0], args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 8)
	// go test asks with SIGQUIT what a test hangs in
	signal.Notify(signals, syscall.SIGQUIT, syscall.SIGTERM, os.Interrupt)
	if err := c.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		return 2
	}
	go func() {
		for s := range signals {
			c.Process.Signal(s)
		}
	}()
	err := c.Wait()
	if c.ProcessState == nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		return 2
	}
	fmt.Println(said + (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).String())
	if code := c.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	fmt.Fprintln(os.Stderr, "testreport:", err) // a signal ended it
	return 2
}

// addSaid notes what a line of runMeasured says, and reports whether the line is one.
func (c costs) addSaid(pkg, line string) bool {
	text, ok := strings.CutPrefix(line, said)
	if !ok {
		return false
	}
	cpu, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil {
		return false
	}
	sum := c[pkg]
	sum.cpu += cpu
	c[pkg] = sum
	return true
}

// addWall adds the seconds after which a package ended.
func (c costs) addWall(pkg string, seconds float64) {
	if seconds == 0 {
		return
	}
	sum := c[pkg]
	sum.wall += time.Duration(seconds * float64(time.Second))
	c[pkg] = sum
}

// check returns an error if a package took more seconds of the processors than most. The time on a clock is no measure:
// it depends on what else runs on the machine.
func (c costs) check(most float64) error {
	var errs []error
	for _, pkg := range slices.Sorted(maps.Keys(c)) {
		if took := c[pkg].cpu.Seconds(); most > 0 && took > most {
			errs = append(errs, fmt.Errorf("the tests of %s took %.0f seconds of the processors, and a package may take %.0f: find the slow test with go test -json, and give it a short form", pkg, took, most))
		}
	}
	return errors.Join(errs...)
}

// order returns the packages, the one that took most of the processors first.
func (c costs) order() []string {
	return slices.SortedFunc(maps.Keys(c), func(a, b string) int {
		if d := c[b].cpu - c[a].cpu; d != 0 {
			return sign(d)
		}
		if d := c[b].wall - c[a].wall; d != 0 {
			return sign(d)
		}
		return strings.Compare(a, b)
	})
}

func sign(d time.Duration) int {
	if d < 0 {
		return -1
	}
	return 1
}

// table has a line for each package, the slowest first: seconds of the processors, seconds on a clock, import path.
func (c costs) table() string {
	var b strings.Builder
	for _, pkg := range c.order() {
		fmt.Fprintf(&b, "%8.2f %8.2f %s\n", c[pkg].cpu.Seconds(), c[pkg].wall.Seconds(), pkg)
	}
	return b.String()
}

// summary names the ten slowest packages and what all took. It is empty if nothing is known.
func (c costs) summary() string {
	if len(c) == 0 {
		return ""
	}
	var all cost
	for _, one := range c {
		all.cpu += one.cpu
		all.wall += one.wall
	}
	lines := strings.SplitAfter(c.table(), "\n")
	return fmt.Sprintf("seconds of the processors, seconds on a clock (all packages: %.0f, %.0f):\n", all.cpu.Seconds(), all.wall.Seconds()) +
		strings.Join(lines[:min(10, len(lines))], "")
}
