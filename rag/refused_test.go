package rag

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/rag/load"
)

// TestRefusedDocumentsAreRemembered holds that a second build does not read the bytes of a refused document again, and that a changed one is read.
func TestRefusedDocumentsAreRemembered(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{"docs/good.txt": "good", "docs/bad.docx": "PK\x03\x04"})
	b := openBase(t, filepath.Join(dir, "kb.db"), Options{Load: load.Options{Dir: dir}})
	problems := func() string {
		r, err := b.Build(t.Context(), []string{"docs"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, p := range r.Problems {
			all = append(all, p.Err.Error())
		}
		return strings.Join(all, "|")
	}
	first := problems()
	if !strings.Contains(first, "a broken DOCX") {
		t.Fatalf("problems %q", first)
	}
	if again := problems(); again != first {
		t.Errorf("the second build says %q, the first %q", again, first)
	}
	const mark = "remembered"
	if _, err := b.db.Exec("UPDATE refused SET reason = ?", mark); err != nil {
		t.Fatal(err)
	}
	if got := problems(); got != mark {
		t.Errorf("the bytes were read again: %q", got)
	}
	if err := b.ForgetRefused(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := problems(); got != first {
		t.Errorf("the bytes were not read again: %q, want %q", got, first)
	}
	testfile.WriteFiles(t, dir, map[string]string{"docs/bad.docx": "PK\x03\x04 changed"})
	if got := problems(); !strings.Contains(got, "a broken DOCX") {
		t.Errorf("the changed document was not read: %q", got)
	}
	var rows int
	if err := b.db.QueryRow("SELECT count(*) FROM refused").Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d refused documents are remembered, error %v", rows, err)
	}
}

// TestBuildsWaitForOneAnother builds one base through several handles, as several processes do, and counts what is embedded.
func TestBuildsWaitForOneAnother(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		testfile.WriteFiles(t, dir, map[string]string{"docs/" + name + ".txt": "the text of " + name})
	}
	var mu sync.Mutex
	embedded := 0
	o := Options{Model: "m", Batch: 1, Load: load.Options{Dir: dir}, Embedder: func(string) (Embedder, error) { return trigrams{dims: 8}, nil }}
	var all sync.WaitGroup
	for range 3 {
		b := openBase(t, filepath.Join(dir, "kb.db"), o)
		all.Go(func() {
			r, err := b.Build(t.Context(), []string{"docs"}, nil)
			if err != nil || r.Documents != 5 {
				t.Errorf("report %+v, error %v", r, err)
			}
			mu.Lock()
			defer mu.Unlock()
			embedded += r.Embedded
		})
	}
	all.Wait()
	if embedded != 5 {
		t.Errorf("%d texts were embedded, there are 5", embedded)
	}
}

// TestWaitingForABuild reports that another build works on the base, and ends with its context.
func TestWaitingForABuild(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{"docs/a.txt": "text"})
	b := openBase(t, filepath.Join(dir, "kb.db"), Options{Load: load.Options{Dir: dir}})
	other := openBase(t, filepath.Join(dir, "kb.db"), Options{Load: load.Options{Dir: dir}})
	unlock, err := other.lockBuild(t.Context(), func() { t.Error("the lock is not free") })
	if err != nil {
		t.Fatal(err)
	}
	waited := 0
	_, err = b.Build(t.Context(), []string{"docs"}, func(p Progress) {
		if p.Waiting {
			waited++
			if err := unlock(); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil || waited != 1 {
		t.Errorf("waited %d times, error %v", waited, err)
	}
}
