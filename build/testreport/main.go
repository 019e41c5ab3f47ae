// Command testreport reads the output of go test -json and prints what go test prints without -v: the closing line of
// each package, and everything about the tests that failed. It then lists the tests that were skipped and counts all
// tests, subtests included, in one line: "NAME: 12 passed, 0 failed, 1 skipped". It fails if a test failed or did not
// end, if no test passed or was skipped, and unless -skips is given, if one was skipped: on a machine that was set up
// to run all tests, a skipped test is one that may be broken.
//
//	go test -exec 'testreport -run' -json ./... | testreport -name test -o results/test
//
// With -run it runs the program that its arguments name, as go test -exec asks, and adds the seconds that the
// processors spent on it to its output. The report then lists the packages that took the most and what all took, and
// writes each package's seconds to results/test.seconds.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	name := flag.String("name", "", "what the tests are called in the last line")
	file := flag.String("o", "", "also write the last line to this `file`")
	skips := flag.Bool("skips", false, "do not fail because tests were skipped")
	most := flag.Float64("most", 0, "fail if a package took more `seconds` of the processors than this; 0 is no limit")
	run := flag.Bool("run", false, "run the program that the arguments name and say what it took")
	flag.Parse()
	if *run {
		os.Exit(runMeasured(flag.Args()))
	}
	c, costs, err := report(os.Stdin, os.Stdout)
	if err == nil {
		err = c.check(*skips)
	}
	err = errors.Join(err, costs.check(*most))
	io.WriteString(os.Stdout, costs.summary())
	line := c.String() + "\n"
	if *name != "" {
		line = *name + ": " + line
	}
	io.WriteString(os.Stdout, line)
	if *file != "" {
		err = errors.Join(err, os.WriteFile(*file, []byte(line), 0o666), os.WriteFile(*file+".seconds", []byte(costs.table()), 0o666))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
}

// A count is how many tests ended in which way.
type count struct {
	passed, failed, skipped int
	broken                  bool // a package failed, such as one that does not compile
}

func (c count) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

// check returns an error if the tests are not as they should be.
func (c count) check(skips bool) error {
	switch {
	case c.failed > 0 || c.broken:
		return errors.New("there are failures")
	case c.skipped > 0 && !skips:
		return errors.New("every test must run here, and some were skipped: install what they miss")
	case c.passed+c.skipped == 0:
		return errors.New("there was no test")
	}
	return nil
}

// An event is one line of go test -json; see go doc test2json. Output of the compiler has an ImportPath instead of a
// Package.
type event struct {
	Action, Package, Test, Output, ImportPath string

	Elapsed float64 // seconds, where a test or a package ended
}

// A test is named by its package and its own name.
type test struct{ pkg, name string }

func (t test) String() string { return t.pkg + " " + t.name }

// report copies what matters from in to out, counts the tests and notes what each package took. Lines that are not
// events are copied.
func report(in io.Reader, out io.Writer) (count, costs, error) {
	r := reporter{out: out, said: map[test]*strings.Builder{}, costs: costs{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		switch {
		case err != nil && err != io.EOF:
			return r.count, r.costs, err
		case len(line) == 0:
			r.close()
			return r.count, r.costs, nil
		case json.Unmarshal(line, &e) != nil:
			out.Write(line)
		default:
			r.take(e)
		}
	}
}

// A reporter is what is known between two events.
type reporter struct {
	out     io.Writer
	said    map[test]*strings.Builder // of the tests that have not ended
	skipped []string                  // tests and what they said
	count   count
	costs   costs
}

func (r *reporter) take(e event) {
	t := test{e.Package, e.Test}
	switch e.Action {
	case "output", "build-output":
		r.output(t, e.Output)
		return
	case "pass", "skip", "fail", "build-fail":
	default:
		return
	}
	if t.name == "" {
		r.costs.addWall(t.pkg, e.Elapsed)
	}
	said := text(r.said[t])
	delete(r.said, t)
	switch {
	case e.Action == "build-fail" || e.Action == "fail" && t.name == "":
		r.count.broken = true
		io.WriteString(r.out, said)
	case t.name == "":
		// All tests of the package have ended: what they said is not needed any more.
		maps.DeleteFunc(r.said, func(of test, _ *strings.Builder) bool { return of.pkg == t.pkg })
	case e.Action == "fail":
		r.count.failed++
		io.WriteString(r.out, said)
	case e.Action == "skip":
		r.count.skipped++
		r.skipped = append(r.skipped, fmt.Sprintf("skipped: %s\n%s", t, said))
	default:
		r.count.passed++
	}
}

// noTests is what the tests of a package say where -run selects none of them.
const noTests = "testing: warning: no tests to run\n"

// output keeps what a test says until it has ended, and passes on what is said about a package.
func (r *reporter) output(t test, line string) {
	if r.costs.addSaid(t.pkg, line) {
		return
	}
	if t.name == "" {
		if line != "PASS\n" && !strings.HasPrefix(line, "=== ") && !strings.HasSuffix(line, "[no tests to run]\n") && line != noTests {
			io.WriteString(r.out, line)
		}
		return
	}
	if r.said[t] == nil {
		r.said[t] = new(strings.Builder)
	}
	r.said[t].WriteString(line)
}

func (r *reporter) close() {
	r.count.failed += len(r.said)
	unfinished(r.out, r.said)
	for _, s := range r.skipped {
		io.WriteString(r.out, s)
	}
}

// unfinished prints what the tests said that never ended, because the program did.
func unfinished(out io.Writer, said map[test]*strings.Builder) {
	var texts []string
	for t, s := range said {
		texts = append(texts, fmt.Sprintf("unfinished: %s\n%s", t, text(s)))
	}
	slices.Sort(texts)
	io.WriteString(out, strings.Join(texts, ""))
}

// text is what a test said, without the lines about its progress.
func text(said *strings.Builder) string {
	if said == nil {
		return ""
	}
	var kept []string
	for line := range strings.Lines(said.String()) {
		if !strings.HasPrefix(line, "=== ") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}
