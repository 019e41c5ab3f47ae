package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A goPackage is a package as go list describes it.
type goPackage struct {
	Dir        string
	ImportPath string
	Name       string
	GoFiles    []string
	Module     struct{ Dir string }

	texts map[string][]byte // of GoFiles
}

// findPackage asks go list about one package.
func findPackage(ctx context.Context, pattern string) (*goPackage, error) {
	c := exec.CommandContext(ctx, "go", "list", "-json=Dir,ImportPath,Name,GoFiles,Module", pattern)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pattern, err)
	}
	p := &goPackage{texts: map[string][]byte{}}
	return p, json.Unmarshal(out, p)
}

// nameFile returns the path of a file of the package below its module.
func (p *goPackage) nameFile(name string) string {
	path := filepath.Join(p.Dir, name)
	if below, err := filepath.Rel(p.Module.Dir, path); err == nil {
		return filepath.ToSlash(below)
	}
	return path
}

// A testProgram is the tests of a package with changes in its code.
type testProgram struct {
	pkg     *goPackage
	dir     string // for temporary files
	path    string
	mutants []*mutant
	numbers int                      // the number of each change is less
	took    map[string]time.Duration // by test
	kills   map[string]int           // how many changes each test has killed
	grace   time.Duration            // what tests may take beyond six times of what they took without a change
}

// switchText is the file that is added to a package.
const switchText = `package %s

import (
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
)

var (
	mutantNumber, _ = strconv.Atoi(os.Getenv("MUTANT_NUMBER"))
	mutantDir       = os.Getenv("MUTANT_DIR")
	mutantsReached  [%d]atomic.Bool // by number: tests that count allocations must not see it
)

func mutantOn(number int) bool {
	if mutantDir != "" && mutantsReached[number].CompareAndSwap(false, true) {
		os.WriteFile(filepath.Join(mutantDir, strconv.Itoa(number)), nil, 0o600)
	}
	return number == mutantNumber
}

func mutantPick[T any](number int, kept, changed T) T {
	if mutantOn(number) {
		return changed
	}
	return kept
}
`

// compile builds the test program. Changes that do not compile, such as one of a constant, are left out.
func (p *goPackage) compile(ctx context.Context, mutants []*mutant) (*testProgram, error) {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	t := &testProgram{pkg: p, dir: dir, path: filepath.Join(dir, "package.test"), mutants: slices.Clone(mutants), numbers: 1, took: map[string]time.Duration{}, kills: map[string]int{},
		grace: 10 * time.Second}
	for _, m := range mutants {
		t.numbers = max(t.numbers, m.number+1)
	}
	for {
		said, err := t.build(ctx)
		if err == nil {
			return t, nil
		}
		left := len(t.mutants)
		t.dropFaulty(said)
		if len(t.mutants) == left || len(t.mutants) == 0 {
			os.RemoveAll(dir)
			return nil, fmt.Errorf("%w:\n%s", err, said)
		}
	}
}

// build compiles the program once, and returns what the compiler said.
func (t *testProgram) build(ctx context.Context) (said string, err error) {
	replaced := map[string]string{}
	write := func(name, text string) error {
		path := filepath.Join(t.dir, name)
		replaced[filepath.Join(t.pkg.Dir, name)] = path
		return os.WriteFile(path, []byte(text), 0o600)
	}
	if err := write("zz_mutants.go", fmt.Sprintf(switchText, t.pkg.Name, t.numbers)); err != nil {
		return "", err
	}
	for _, name := range t.pkg.GoFiles {
		inFile := slices.DeleteFunc(slices.Clone(t.mutants), func(m *mutant) bool { return m.file != name })
		if len(inFile) == 0 {
			continue
		}
		if err := write(name, rewrite(string(t.pkg.texts[name]), inFile)); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	list := filepath.Join(t.dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	c := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-gcflags=-e", "-overlay", list, "-o", t.path, t.pkg.ImportPath)
	c.Dir = t.pkg.Dir
	out, err := c.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("compile the tests of %s: %w", t.pkg.ImportPath, err)
	}
	return string(out), nil
}

// errorPlace is the place at the beginning of a line of the compiler.
var errorPlace = regexp.MustCompile(`(?m)^(?:.*/)?([^/\s:]+\.go):(\d+):`)

// dropFaulty removes the changes on lines about which the compiler complains.
func (t *testProgram) dropFaulty(said string) {
	for _, place := range errorPlace.FindAllStringSubmatch(said, -1) {
		line, _ := strconv.Atoi(place[2])
		t.mutants = slices.DeleteFunc(t.mutants, func(m *mutant) bool {
			last := m.line + bytes.Count(t.pkg.texts[m.file][m.start:m.end], []byte("\n"))
			return m.file == place[1] && m.line <= line && line <= last
		})
	}
}

// findReached runs each test alone and notes which changes it reaches. It returns an error if a test fails without a
// change.
func (t *testProgram) findReached(ctx context.Context) error {
	out, err := t.start(ctx, nil, "-test.list=.").Output()
	if err != nil {
		return fmt.Errorf("list the tests of %s: %w", t.pkg.ImportPath, err)
	}
	byNumber := map[int]*mutant{}
	for _, m := range t.mutants {
		byNumber[m.number] = m
	}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		if !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Example") && !strings.HasPrefix(name, "Fuzz") {
			continue
		}
		reached := filepath.Join(t.dir, "reached", name)
		if err := os.MkdirAll(reached, 0o700); err != nil {
			return err
		}
		begin := time.Now()
		said, err := t.start(ctx, []string{"MUTANT_DIR=" + reached}, "-test.run=^"+name+"$").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s fails without a change: %w\n%s", name, err, said)
		}
		t.took[name] = time.Since(begin)
		entries, err := os.ReadDir(reached)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if n, err := strconv.Atoi(e.Name()); err == nil && byNumber[n] != nil {
				byNumber[n].reached = append(byNumber[n].reached, name)
			}
		}
	}
	return nil
}

// start prepares a run of the program.
func (t *testProgram) start(ctx context.Context, env []string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, t.path, args...)
	c.Dir = t.pkg.Dir
	c.Env = append(os.Environ(), env...)
	c.WaitDelay = 5 * time.Second
	return c
}

// A fate is what became of a change.
type fate string

const (
	killed     fate = "killed    " // a test failed
	timeout    fate = "timeout   " // the tests did not end
	survived   fate = "survived  " // all tests passed
	unreached  fate = "unreached " // no test runs the code
	equivalent fate = "equivalent" // no test can notice it
)

// batch is how many tests run in one process, because one that fails ends all.
const batch = 20

// failedTest is the line about the first test that failed.
var failedTest = regexp.MustCompile(`(?m)^--- FAIL: ([^\s/]+)`)

// orderTests returns tests in the order in which they run: the one that has killed most changes so far in a process of
// its own, then the fastest first.
func (t *testProgram) orderTests(reached []string) (batches [][]string) {
	tests := slices.SortedFunc(slices.Values(reached), func(a, b string) int { return cmp.Compare(t.took[a], t.took[b]) })
	best := slices.MaxFunc(tests, func(a, b string) int { return cmp.Compare(t.kills[a], t.kills[b]) })
	if t.kills[best] > 0 {
		batches = append(batches, []string{best})
		tests = slices.DeleteFunc(tests, func(name string) bool { return name == best })
	}
	return slices.AppendSeq(batches, slices.Chunk(tests, batch))
}

// try runs the tests that reach a change with it.
func (t *testProgram) try(ctx context.Context, m *mutant) (fate, error) {
	if len(m.reached) == 0 {
		return unreached, nil
	}
	for _, some := range t.orderTests(m.reached) {
		limit := t.grace
		for _, name := range some {
			limit += 6 * t.took[name]
		}
		limited, cancel := context.WithTimeout(ctx, limit)
		env := []string{"MUTANT_NUMBER=" + strconv.Itoa(m.number)}
		said, err := t.start(limited, env, "-test.failfast", "-test.run=^("+strings.Join(some, "|")+")$").CombinedOutput()
		late := limited.Err() != nil
		cancel()
		var exit *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case late:
			return timeout, nil
		case errors.As(err, &exit):
			if name := failedTest.FindSubmatch(said); name != nil {
				t.kills[string(name[1])]++
			}
			return killed, nil
		case err != nil:
			return "", err
		}
	}
	return survived, nil
}
