// Command testreport reads the output of go test -json and prints what go test prints without -v: the closing line of each package, and
// everything about the tests that failed. It then lists the tests that were skipped, and fails if there are any: on a machine that was
// set up to run all tests, a skipped test is one that nobody knows to be broken.
//
//	go test -json ./... | testreport
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	ok, err := report(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// An event is one line of go test -json; see go doc test2json. Output of the compiler has an ImportPath instead of a Package.
type event struct {
	Action, Package, Test, Output, ImportPath string
}

// A test is named by its package and its own name.
type test struct{ pkg, name string }

func (t test) String() string { return t.pkg + " " + t.name }

// report copies what matters from in to out and tells whether all tests were run and passed. Lines that are not events are copied.
func report(in io.Reader, out io.Writer) (ok bool, err error) {
	r := reporter{out: out, said: map[test]*strings.Builder{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		switch {
		case err != nil && err != io.EOF:
			return false, err
		case len(line) == 0:
			return r.close(), nil
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
	failed  bool
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
	said := text(r.said[t])
	delete(r.said, t)
	switch {
	case e.Action == "fail" || e.Action == "build-fail":
		r.failed = true
		io.WriteString(r.out, said)
	case e.Action == "skip" && t.name != "": // not a package without tests
		r.skipped = append(r.skipped, fmt.Sprintf("skipped: %s\n%s", t, said))
	}
}

// output keeps what a test says until it has ended, and passes on what is said about a package.
func (r *reporter) output(t test, line string) {
	if t.name == "" {
		if line != "PASS\n" && !strings.HasPrefix(line, "=== ") {
			io.WriteString(r.out, line)
		}
		return
	}
	if r.said[t] == nil {
		r.said[t] = new(strings.Builder)
	}
	r.said[t].WriteString(line)
}

func (r *reporter) close() (ok bool) {
	unfinished(r.out, r.said)
	for _, s := range r.skipped {
		io.WriteString(r.out, s)
	}
	if len(r.skipped) > 0 {
		fmt.Fprintf(r.out, "%d skipped, and here every test must run: install what they miss\n", len(r.skipped))
	}
	return !r.failed && len(r.skipped) == 0
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
