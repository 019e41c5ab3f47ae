package rag

import (
	"archive/zip"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/rag/load"
)

const megabyte = 1 << 20

// hostileDocuments are files that would take a multiple of their size in memory if they were read without care.
var hostileDocuments = map[string]func() []byte{
	"word.txt":   func() []byte { return bytes.Repeat([]byte("x"), 7*megabyte) },
	"wide.txt":   func() []byte { return append([]byte{0xff, 0xfe}, bytes.Repeat([]byte("\x2d\x4e"), 2*megabyte)...) },
	"latin1.txt": func() []byte { return bytes.Repeat([]byte("caf\xe9 noir, "), 7*megabyte/12) },
	"deep.json":  func() []byte { return nested("[", "]", 9_000, 7*megabyte) },
	"flat.json":  func() []byte { return append(append([]byte("["), bytes.Repeat([]byte("1,"), 3*megabyte)...), "1]"...) },
	"commas.csv": func() []byte { return append([]byte("a,b\n"), bytes.Repeat([]byte(","), 7*megabyte)...) },
	"heading.csv": func() []byte {
		return slices.Concat(bytes.Repeat([]byte("h"), megabyte), []byte("\n"), bytes.Repeat([]byte("1\n"), 3*megabyte))
	},
	"tags.html":  func() []byte { return bytes.Repeat([]byte("<b>x<p>"), megabyte) },
	"tag.html":   func() []byte { return append([]byte("<p "), bytes.Repeat([]byte("a "), 3*megabyte)...) },
	"table.html": func() []byte { return append([]byte("<table>"), bytes.Repeat([]byte("<tr><td>1<td>2"), megabyte/2)...) },
	"bomb.docx":  func() []byte { return zipped("word/document.xml", "<d>", "<p><t>x</t></p>", 50*megabyte) },
	"bomb.odt":   func() []byte { return zipped("content.xml", "<d><p>", "x", 50*megabyte) },
	"size.pdf": func() []byte {
		return []byte("%PDF-1.4\nxref\n0 1\n0000000000 65535 f \ntrailer\n<< /Size 300000000000 >>\nstartxref\n9\n%%EOF\n")
	},
}

// zipped returns a ZIP file of one file: head, and body until there are size bytes.
func zipped(name, head, body string, size int) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create(name)
	if err != nil {
		panic(err)
	}
	block := []byte(strings.Repeat(body, megabyte/len(body)))
	_, _ = io.WriteString(w, head)
	for range size / len(block) {
		_, _ = w.Write(block)
	}
	_ = z.Close()
	return b.Bytes()
}

// uniqueWords is a text of which no word occurs twice.
func uniqueWords() []byte {
	var b bytes.Buffer
	r := rand.New(rand.NewPCG(1, 2))
	for b.Len() < 7*megabyte {
		b.WriteString(strconv.FormatUint(r.Uint64N(1<<40), 36))
		b.WriteByte(' ')
	}
	return b.Bytes()
}

// nested repeats brackets that are nested depth deep until there are size bytes.
func nested(open, end string, depth, size int) []byte {
	one := strings.Repeat(open, depth) + strings.Repeat(end, depth)
	return []byte(open + strings.Repeat(one+",", size/len(one)) + one + end)
}

// TestMemoryOfHostileDocuments takes the chunks of each hostile document in a process of its own, which reports the memory that it has taken
// from the system. A document of unique words becomes a base, too.
func TestMemoryOfHostileDocuments(t *testing.T) {
	const (
		maxOfChunks = 80  // MB where a document may have 8; where it may have 32 they are four times as many at most
		maxOfBuild  = 160 // MB that do not depend on the size of a document
	)
	dir := t.TempDir()
	// The race detector takes several times the memory and the time of the code, so the processes are built without it, and with the flags of
	// make build, so that little is compiled again.
	program := filepath.Join(dir, "rag.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-trimpath", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program to measure: %v: %s", err, out)
	}
	measure := func(test, name string, data []byte) int {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c := exec.CommandContext(t.Context(), program, "-test.run=^"+test+"$")
		c.Env = append(os.Environ(), "RAG_TEST_DOCUMENT="+path)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		_, after, _ := strings.Cut(string(out), "memory: ")
		word, _, _ := strings.Cut(after, " ")
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatalf("%s: %s", name, out)
		}
		t.Logf("%s: %.150s", name, after)
		return n
	}
	idle := measure("TestChunksInProcess", "small.txt", []byte("a small document"))
	check := func(test, name string, data []byte, most int) {
		if n := measure(test, name, data); n-idle > most {
			t.Errorf("%s takes %d MB above the %d MB of a small document, at most %d are allowed", name, n-idle, idle, most)
		}
	}
	for name, document := range hostileDocuments {
		check("TestChunksInProcess", name, document(), maxOfChunks)
	}
	check("TestBuildInProcess", "unique.txt", uniqueWords(), maxOfBuild)
}

func testDocument(t *testing.T) (dir, name string) {
	t.Helper()
	document := os.Getenv("RAG_TEST_DOCUMENT")
	if document == "" {
		document = filepath.Join(t.TempDir(), "small.txt")
		testfile.WriteFiles(t, filepath.Dir(document), map[string]string{"small.txt": "a small document"})
	}
	return filepath.Dir(document), filepath.Base(document)
}

func printMemory(format string, args ...any) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Printf("memory: %d MB, %s\n", m.Sys/megabyte, fmt.Sprintf(format, args...))
}

// TestChunksInProcess is a process that TestMemoryOfHostileDocuments starts.
func TestChunksInProcess(t *testing.T) {
	dir, name := testDocument(t)
	b := openBase(t, filepath.Join(t.TempDir(), "kb.db"), Options{Load: load.Options{Dir: dir, MaxBytes: 8 * megabyte}})
	entries, _, err := load.List(t.Context(), []string{name}, b.o.Load)
	if err != nil {
		t.Fatal(err)
	}
	w := builder{base: b, settings: b.o.buildSettings(nil)}
	if err := w.loadDocuments(t.Context()); err != nil {
		t.Fatal(err)
	}
	chunks, warning, err := w.prepareEntry(t.Context(), entries[0])
	if err != nil && !errors.As(err, new(*load.RefusedError)) {
		t.Fatal(err)
	}
	printMemory("%d chunks, %q, %v", chunks, warning, err)
}

// TestBuildInProcess is the other one.
func TestBuildInProcess(t *testing.T) {
	dir, name := testDocument(t)
	b := openBase(t, filepath.Join(t.TempDir(), "kb.db"), Options{Load: load.Options{Dir: dir}})
	build(t, b, name)
	printMemory("built")
}

// TestSegmentsThatDoNotFitIntoMemory compares a base whose words were written in many parts with one whose words were written at once.
func TestSegmentsThatDoNotFitIntoMemory(t *testing.T) {
	dir := t.TempDir()
	for i := range 200 {
		testfile.WriteFiles(t, dir, map[string]string{fmt.Sprintf("docs/%03d.txt", i): fmt.Sprintf("red green %d blue%d", i, i%7)})
	}
	b := openBase(t, filepath.Join(dir, "kb.db"), Options{Load: load.Options{Dir: dir}})
	build(t, b, "docs")
	want := map[string][]string{}
	queries := []string{"red", "green 17", "blue3", "blue6 150 red"}
	for _, q := range queries {
		want[q] = paths(t, b, q, 20)
	}
	ctx := t.Context()
	for _, joined := range []bool{false, true} {
		err := runTransaction(ctx, b.db, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "DELETE FROM posting; CREATE TEMP TABLE IF NOT EXISTS fresh (id INTEGER PRIMARY KEY); "+
				"DELETE FROM fresh; INSERT INTO fresh SELECT id FROM document")
			if err == nil {
				err = collectPostings(ctx, tx, 3000)
			}
			if err == nil && joined {
				err = mergeSegments(ctx, tx)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := segments(t, ctx, b); joined != (n == 1) || !joined && n < 5 {
			t.Errorf("joined %t: %d segments", joined, n)
		}
		b.mu.Lock()
		b.view = nil
		b.mu.Unlock()
		for _, q := range queries {
			if diff := cmp.Diff(want[q], paths(t, b, q, 20)); diff != "" {
				t.Errorf("joined %t: %q (-want +got):\n%s", joined, q, diff)
			}
		}
	}
}

func segments(t *testing.T, ctx context.Context, b *Base) (n int) {
	t.Helper()
	if err := b.db.QueryRowContext(ctx, "SELECT count(DISTINCT segment) FROM posting").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
