package rag

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/llm"
)

// TestUselessAnswers reports unusable answers once, continues, and never asks again.
func TestUselessAnswers(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, people)
	r := newReader(t)
	r.answers(func(passage string) (string, int) {
		if strings.Contains(passage, "Science") {
			return "I would rather not.", http.StatusOK
		}
		if strings.Contains(passage, "nothing") {
			return "the content filter was triggered", http.StatusBadRequest
		}
		return capitals(passage)
	})
	b := openBase(t, filepath.Join(dir, "kb.db"), r.options(dir))
	var missed []string
	var last Progress
	report, err := b.Build(t.Context(), []string{"docs"}, func(p Progress) {
		if p.Missed != nil {
			missed = append(missed, filepath.Base(p.Path)+": "+p.Missed.Error())
		}
		last = p
	})
	slices.Sort(missed)
	if err != nil || report.Asked != 4 || report.Missed != 2 || len(missed) != 2 || last.Asked != 4 || last.ToAsk != 4 {
		t.Fatalf("report %+v, %v, missed %q, last %+v", report, err, missed, last)
	}
	if !strings.HasPrefix(missed[0], "b.txt: the answer is not a JSON object") || !strings.Contains(missed[1], "c.txt: bad request (400)") {
		t.Errorf("missed %q", missed)
	}
	r.asked()
	if report := build(t, b, "docs"); report.Asked != 0 || report.Changed || len(r.asked()) != 0 {
		t.Errorf("asked again: %+v", report)
	}
}

// TestPassingFailures leave a chunk without entities until the next build.
func TestPassingFailures(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, people)
	r := newReader(t)
	r.answers(func(passage string) (string, int) {
		if strings.Contains(passage, "Science") {
			return "later", http.StatusServiceUnavailable
		}
		return capitals(passage)
	})
	b := openBase(t, filepath.Join(dir, "kb.db"), r.options(dir))
	if report := build(t, b, "docs"); report.Asked != 4 || report.Missed != 1 || report.Entities != 4 {
		t.Errorf("report %+v", report)
	}
	if report := build(t, b, "docs"); report.Asked != 1 || report.Missed != 1 || report.Changed {
		t.Errorf("report %+v", report)
	}
	r.answers(nil)
	if report := build(t, b, "docs"); report.Asked != 1 || report.Missed != 0 || !report.Changed || report.Entities != 5 {
		t.Errorf("report %+v", report)
	}
	if report := build(t, b, "docs"); report.Asked != 0 || report.Changed {
		t.Errorf("report %+v", report)
	}
}

// TestWhatEveryChunkWouldMeet stops a build of many chunks after a few calls.
func TestWhatEveryChunkWouldMeet(t *testing.T) {
	dir := t.TempDir()
	for i := range 200 {
		testfile.WriteFiles(t, dir, map[string]string{fmt.Sprintf("docs/%03d.txt", i): fmt.Sprintf("Text %d is short.", i)})
	}
	for name, c := range map[string]struct {
		answer func(string) (string, int)
		open   func(context.Context, string) (llm.Model, error)
		want   string
		most   int
	}{
		"key":           {answer: func(string) (string, int) { return "wrong key", 401 }, want: "extractor model reader: authentication failed (401)", most: 2 * DefaultCalls},
		"model":         {answer: func(string) (string, int) { return "no such model", 404 }, want: "bad request (404)", most: 2 * DefaultCalls},
		"never JSON":    {answer: func(string) (string, int) { return "Hello!", 200 }, want: "it has failed 10 times in a row, the last time with: the answer is not", most: maxFailures + DefaultCalls},
		"server down":   {answer: func(string) (string, int) { return "down", 503 }, want: "it has failed 10 times in a row", most: maxFailures + DefaultCalls},
		"cannot open":   {open: func(context.Context, string) (llm.Model, error) { return nil, errors.New("no client") }, want: "extractor model reader: no client"},
		"no way to one": {open: nil, want: "Extraction.Open is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReader(t)
			o := r.options(dir)
			if c.answer == nil {
				o.Extraction.Open = c.open
			}
			r.answers(c.answer)
			b := openBase(t, filepath.Join(t.TempDir(), "kb.db"), o)
			_, err := b.Build(t.Context(), []string{"docs"}, nil)
			var stopped *ExtractError
			if !errors.As(err, &stopped) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if n := len(r.asked()); n > c.most {
				t.Errorf("%d calls, at most %d are in order", n, c.most)
			}
			if s, err := b.Status(t.Context()); err != nil || s.Builds != 0 {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

func TestExtractionIsCancelled(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, people)
	r := newReader(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	release := make(chan struct{})
	r.answers(func(string) (string, int) {
		cancel()
		<-release
		return "", 500
	})
	b := openBase(t, filepath.Join(dir, "kb.db"), r.options(dir))
	_, err := b.Build(ctx, []string{"docs"}, nil)
	close(release)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
