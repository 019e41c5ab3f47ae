// Command mutants says what the tests of a package would not notice. It changes the code of the package in many small
// ways, one at a time, and runs the package's own tests with each change: a change with which all tests pass survives,
// and shows a line that no test of this package guards.
//
//	mutants -n 100 -seed 1 ./tool/permission
//
// All changes are compiled at once into one test program, which makes the one that an environment variable names; go
// build -overlay keeps the sources as they are. Before that, each test runs alone and says which changes it reaches, so
// that only these tests run with a change. A change that no test reaches survives without a run.
//
// It prints a line for each change that survives, or with -v for each change, and then the score. Changes that no test
// can notice, because the program does the same with them, are listed with a reason in equivalent.txt beside this file,
// and do not count.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

//go:embed equivalent.txt
var equivalentText string

func main() {
	n := flag.Int("n", 100, "how many changes of each package are tried, chosen at random; 0: all")
	seed := flag.Uint64("seed", 1, "chooses the changes: the same number chooses the same ones")
	files := flag.String("files", "", "change only these `files` of the package, such as place.go,rule.go")
	verbose := flag.Bool("v", false, "also list changes that were killed")
	least := flag.Float64("least", 0, "fail if less than this `percentage` is killed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	chosen := selection{count: *n, seed: *seed}
	if *files != "" {
		chosen.files = strings.Split(*files, ",")
	}
	failed := false
	for _, pattern := range flag.Args() {
		if err := tryPackage(ctx, pattern, chosen, *verbose, *least); err != nil {
			fmt.Fprintln(os.Stderr, "mutants:", err)
			failed = true
		}
	}
	if failed || flag.NArg() == 0 {
		if flag.NArg() == 0 {
			fmt.Fprintln(os.Stderr, "mutants: name a package: mutants ./tool/permission")
		}
		os.Exit(1)
	}
}

// A selection says which changes of a package are tried.
type selection struct {
	count int // 0: all
	seed  uint64
	files []string // names without directories; none: all
}

// choose returns the selected changes, in the order of the sources, numbered from 1.
func (s selection) choose(all []*mutant) []*mutant {
	chosen := slices.Clone(all)
	if len(s.files) > 0 {
		chosen = slices.DeleteFunc(chosen, func(m *mutant) bool { return !slices.Contains(s.files, m.file) })
	}
	if s.count > 0 && s.count < len(chosen) {
		random := rand.New(rand.NewPCG(s.seed, 0))
		random.Shuffle(len(chosen), func(i, k int) { chosen[i], chosen[k] = chosen[k], chosen[i] })
		chosen = chosen[:s.count]
		slices.SortFunc(chosen, compareMutants)
	}
	for i, m := range chosen {
		m.number = i + 1
	}
	return chosen
}

// tryPackage tries changes of one package and prints what became of them.
func tryPackage(ctx context.Context, pattern string, chosen selection, verbose bool, least float64) error {
	p, err := findPackage(ctx, pattern)
	if err != nil {
		return err
	}
	all, err := p.listMutants()
	if err != nil {
		return err
	}
	mutants := chosen.choose(all)
	if len(mutants) == 0 {
		return fmt.Errorf("%s has nothing to change", p.ImportPath)
	}
	program, err := p.compile(ctx, mutants)
	if err != nil {
		return err
	}
	defer os.RemoveAll(program.dir)
	if err := program.findReached(ctx); err != nil {
		return err
	}
	known := parseEquivalent(equivalentText)
	counts := map[fate]int{}
	for _, m := range program.mutants {
		result := equivalent
		if !known[m.key()] {
			if result, err = program.try(ctx, m); err != nil {
				return err
			}
		}
		counts[result]++
		if verbose || result == survived || result == unreached {
			fmt.Printf("%s  %s:%d  %s\n", result, p.nameFile(m.file), m.line, m)
		}
	}
	s := score{name: p.ImportPath, made: len(all), counts: counts}
	fmt.Println(s)
	if s.percentage() < least {
		return errors.New("the tests kill too few changes")
	}
	return nil
}

// A score is what became of the changes of a package.
type score struct {
	name   string
	made   int // changes that the package has
	counts map[fate]int
}

// percentage returns how many of the changes that can be noticed were noticed.
func (s score) percentage() float64 {
	noticed := s.counts[killed] + s.counts[timeout]
	all := noticed + s.counts[survived] + s.counts[unreached]
	if all == 0 {
		return 100
	}
	return 100 * float64(noticed) / float64(all)
}

func (s score) String() string {
	return fmt.Sprintf("%s: %.0f %% killed (%d killed, %d timeout, %d survived, %d unreached, %d equivalent; of %d that can be made)", s.name, s.percentage(),
		s.counts[killed], s.counts[timeout], s.counts[survived], s.counts[unreached], s.counts[equivalent], s.made)
}

// parseEquivalent reads the list of changes that no test can notice: a line is the key of a change, two blanks or more,
// and the reason. Lines that begin with # are comments.
func parseEquivalent(text string) map[string]bool {
	known := map[string]bool{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			key, _, _ := strings.Cut(line, "  ")
			known[key] = true
		}
	}
	return known
}
