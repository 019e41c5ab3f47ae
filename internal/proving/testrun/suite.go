package testrun

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"raddle.dev/internal/proving/testcase"
)

// Suite runs the cases of files.
type Suite struct {
	Runner Runner
	Jobs   int            // cases at the same time; 0: one for each processor
	Match  *regexp.Regexp // of the names of cases, or of FILE/NAME; nil: all cases

	// Setup says how a case is run; nil: once, in memory. It is called from several goroutines.
	Setup func(c *testcase.Case) Setup
}

// FileResult is what the cases of one file did.
type FileResult struct {
	Path    string
	Err     error // why the file cannot be used; the results are nil then
	Results []*Result
	Updated int // expected values that were replaced

	file *testcase.File
}

// CountFailed returns the number of cases that have not passed. A file that cannot be used counts as one.
func (f *FileResult) CountFailed() (n int) {
	if f.Err != nil {
		return 1
	}
	for _, r := range f.Results {
		if !r.HasPassed() {
			n++
		}
	}
	return n
}

// FindFiles returns the files of cases at paths: files, and those in directories and below. Hidden directories and
// packages are left out.
func FindFiles(paths []string) (files []string, err error) {
	for _, path := range paths {
		err := filepath.WalkDir(path, func(found string, e fs.DirEntry, err error) error {
			switch name := filepath.Base(found); {
			case err != nil:
				return err
			case e.IsDir() && found != path && (strings.HasPrefix(name, ".") || slices.Contains(packageDirs, name)):
				return fs.SkipDir
			case !e.IsDir() && strings.HasSuffix(name, testcase.Suffix):
				files = append(files, found)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// Run runs the cases of files, several at the same time. each is called with the results of each file, in the order of
// the files, as soon as they and those before are there. The error is that of ctx, or says why a case could not run at
// all.
func (s *Suite) Run(ctx context.Context, files []string, each func(*FileResult)) (all []*FileResult, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	places := make(chan struct{}, cmp.Or(s.Jobs, runtime.GOMAXPROCS(0)))
	var ready []*sync.WaitGroup
	var running sync.WaitGroup
	defer running.Wait()
	for _, path := range files {
		f := &FileResult{Path: path}
		all = append(all, f)
		ready = append(ready, &sync.WaitGroup{})
		if f.file, f.Err = testcase.Load(path); f.Err != nil {
			continue
		}
		done := ready[len(ready)-1]
		for _, c := range s.selectCases(f.file) {
			r := &Result{Case: c}
			f.Results = append(f.Results, r)
			done.Add(1)
			running.Go(func() {
				defer done.Done()
				select {
				case places <- struct{}{}:
				case <-ctx.Done():
					return
				}
				defer func() { <-places }()
				if err := s.runCase(ctx, c, r); err != nil {
					cancel(err)
				}
			})
		}
	}
	for i, f := range all {
		if ready[i].Wait(); ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if each != nil {
			each(f)
		}
	}
	return all, nil
}

func (s *Suite) runCase(ctx context.Context, c *testcase.Case, to *Result) error {
	var setup Setup
	if s.Setup != nil {
		setup = s.Setup(c)
	}
	r, err := s.Runner.RunCase(ctx, c, setup)
	if err == nil {
		*to = *r
	}
	return err
}

func (s *Suite) selectCases(f *testcase.File) (cases []*testcase.Case) {
	for _, c := range f.Cases {
		if s.Match == nil || s.Match.MatchString(filepath.ToSlash(f.Path)+"/"+c.Name) {
			cases = append(cases, c)
		}
	}
	return cases
}

// Update replaces the expected values of a file with what its cases did, and runs the cases of the file again. What
// cannot be replaced still fails; the error says why a value that could be replaced was not.
func (s *Suite) Update(ctx context.Context, f *FileResult) (*FileResult, error) {
	var failed []testcase.Failure
	for _, r := range f.Results {
		failed = append(failed, r.Failures...)
	}
	if f.Err != nil {
		return f, nil
	}
	text, n, left := testcase.Replace(f.file.Text, failed)
	if n == 0 {
		return f, left
	}
	info, err := os.Stat(f.Path)
	if err != nil {
		return f, err
	}
	if err := os.WriteFile(f.Path, text, info.Mode().Perm()); err != nil {
		return f, err
	}
	again, err := s.Run(ctx, []string{f.Path}, nil)
	if err != nil {
		return f, err
	}
	again[0].Updated = n
	return again[0], left
}

// watchInterval is the time between two looks at the files of agents.
const watchInterval = 300 * time.Millisecond

// WaitForChange returns when a file of the agents that the files of cases belong to has changed, or with the error of
// ctx.
func (s *Suite) WaitForChange(ctx context.Context, paths []string) error {
	before := s.stampFiles(paths)
	timer := time.NewTicker(watchInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			if s.stampFiles(paths) != before {
				return nil
			}
		}
	}
}

// stampFiles returns a text that differs when a file in the directories has changed.
func (s *Suite) stampFiles(paths []string) string {
	var dirs []string
	for _, path := range paths {
		dir, err := filepath.Abs(path)
		if strings.HasSuffix(path, testcase.Suffix) {
			dir = filepath.Dir(dir)
		}
		if err == nil {
			dirs = append(dirs, dir)
		}
	}
	s.Runner.mu.Lock()
	for _, children := range s.Runner.children {
		dirs = append(dirs, children...)
	}
	s.Runner.mu.Unlock()
	slices.Sort(dirs)
	var b strings.Builder
	for _, dir := range slices.Compact(dirs) {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			name := filepath.Base(path)
			switch {
			case err != nil:
				return nil // it is gone: the text differs
			case e.IsDir() && path != dir && (slices.Contains(packageDirs, name) || slices.Contains(skippedDirs, name)):
				return fs.SkipDir
			case b.Len() > maxFiles*100:
				return errors.New("enough")
			}
			if info, err := e.Info(); err == nil && !e.IsDir() {
				b.WriteString(path + info.ModTime().String() + "\n")
			}
			return nil
		})
	}
	return b.String()
}
