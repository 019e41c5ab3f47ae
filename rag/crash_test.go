package rag

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/rag/load"
)

const crashDocuments = 2000

func crashOptions(dir string, m Embedder) Options {
	return Options{Model: "test:words", ChunkSize: 80, Batch: 16, Load: load.Options{Dir: dir},
		Embedder: func(string) (Embedder, error) { return m, nil }}
}

// TestMain is the child process of TestKilledBuild if a variable says so: it builds, and reports its progress.
func TestMain(m *testing.M) {
	extractIfTold()
	dir := os.Getenv("RAG_TEST_BUILD")
	if dir == "" {
		os.Exit(m.Run())
	}
	b, err := Open(filepath.Join(dir, "kb.db"), crashOptions(dir, &wordModel{dims: 16}))
	if err == nil {
		_, err = b.Build(context.Background(), []string{"docs"}, func(p Progress) { fmt.Println(p.Done) })
	}
	fmt.Println("end", err)
	os.Exit(0)
}

// TestKilledBuild kills a build of 2000 documents twice, continues it, and compares the base with one that was never interrupted.
func TestKilledBuild(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{}
	for i := range crashDocuments {
		files[fmt.Sprintf("docs/%04d.txt", i)] = fmt.Sprintf("Document %d speaks of subject %d.\n\nIts second part names %d and the letter %c.",
			i, i%37, i*i, 'a'+i%26)
	}
	testfile.WriteFiles(t, dir, files)
	for _, at := range []string{"600", "1500"} {
		killAt(t, dir, at)
	}
	m := &wordModel{dims: 16}
	b := openBase(t, filepath.Join(dir, "kb.db"), crashOptions(dir, m))
	s, err := b.Status(t.Context())
	if err != nil || s.Builds != 0 || s.Pending < 1400 {
		t.Fatalf("after the kills: %+v, %v", s, err)
	}
	build(t, b, "docs")
	if n := len(m.asked()); n > 2*(crashDocuments-1400) {
		t.Errorf("%d texts were embedded again", n)
	}
	whole := openBase(t, filepath.Join(dir, "whole.db"), crashOptions(dir, &wordModel{dims: 16}))
	build(t, whole, "docs")
	if diff := cmp.Diff(dump(t, whole), dump(t, b)); diff != "" {
		t.Errorf("contents (-whole +killed):\n%s", diff)
	}
	for _, q := range []string{"subject 5", "letter q of document 1234", "second part"} {
		got, err1 := b.Search(t.Context(), q, SearchOptions{TopK: 30})
		want, err2 := whole.Search(t.Context(), q, SearchOptions{TopK: 30})
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-whole +killed):\n%s", q, diff)
		}
	}
}

// killAt starts a build in a separate process and kills it when it reaches document at.
func killAt(t *testing.T, dir, at string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "RAG_TEST_BUILD="+dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "end") {
			t.Fatalf("the build ended before document %s: %s", at, lines.Text())
		}
		if lines.Text() == at {
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // its error is the kill
}

// dump returns the contents of a base, without its row ids.
func dump(t *testing.T, b *Base) (all []string) {
	t.Helper()
	rows, err := b.db.Query(`SELECT d.path, d.place, d.hash, c.place, c.tokens, c.text, hex(v.data) FROM document d
		JOIN chunk c ON c.document = d.id LEFT JOIN vector v ON v.id = c.vector WHERE d.live ORDER BY d.place, c.place`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var path, hash, text, vector string
		var place, chunk, tokens int
		if err := rows.Scan(&path, &place, &hash, &chunk, &tokens, &text, &vector); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(path, place, hash, chunk, tokens, text, vector))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestProcessesAtOnce lets several processes create and build one base at the same time.
func TestProcessesAtOnce(t *testing.T) {
	dir := t.TempDir()
	for i := range 40 {
		testfile.WriteFiles(t, dir, map[string]string{fmt.Sprintf("docs/%02d.txt", i): fmt.Sprintf("Document %d of a few.", i)})
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	outputs := make(chan string)
	const processes = 4
	for range processes {
		go func() {
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), "RAG_TEST_BUILD="+dir)
			out, err := cmd.CombinedOutput()
			outputs <- fmt.Sprint(string(out), err)
		}()
	}
	for range processes {
		if out := <-outputs; !strings.Contains(out, "end <nil>") {
			t.Errorf("a build failed: %s", out)
		}
	}
	b := openBase(t, filepath.Join(dir, "kb.db"), crashOptions(dir, &wordModel{dims: 16}))
	s, err := b.Status(t.Context())
	if err != nil || s.Documents != 40 || s.Chunks != 40 || s.Pending != 0 {
		t.Errorf("status %+v, %v", s, err)
	}
	if r := build(t, b, "docs"); r.Changed || r.Embedded > 0 {
		t.Errorf("a build after them: %+v", r)
	}
	if got := paths(t, b, "17", 1); len(got) != 1 || got[0] != "17.txt" {
		t.Errorf("hits %v", got)
	}
}
