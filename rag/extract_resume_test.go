package rag

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/rag/load"
)

// TestFileOfVersionOne opens a base as it was written before there were entities.
func TestFileOfVersionOne(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, people)
	path := filepath.Join(dir, "kb.db")
	writeVersionOne(t, path, filepath.Join(dir, "docs/a.txt"))
	r := newReader(t)
	old := openBase(t, path, Options{})
	s, err := old.Status(t.Context())
	if err != nil || s.Chunks != 1 || s.Entities != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	if diff := cmp.Diff([]string{"a.txt"}, paths(t, old, "analytical", 3)); diff != "" {
		t.Errorf("hits (-want +got):\n%s", diff)
	}
	b := openBase(t, path, r.options(dir))
	if report := build(t, b, "docs"); report.Asked != 4 || report.Entities != 5 {
		t.Errorf("report %+v", report)
	}
}

func writeVersionOne(t *testing.T, path, document string) {
	t.Helper()
	db, err := openFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"DROP TABLE mention", "DROP TABLE entity", "DROP INDEX chunk_extract", "ALTER TABLE chunk DROP COLUMN extract", "ALTER TABLE chunk DROP COLUMN stands", "ALTER TABLE document DROP COLUMN date",
		"ALTER TABLE document DROP COLUMN extracted", "DROP TABLE extract", "DROP TABLE refused", "DROP TABLE unread", "PRAGMA user_version = 1",
		`INSERT INTO base VALUES (1, '{"model":"keyword","chunk_size":60,"chunk_overlap":0,"top_k":5,"sources":["docs"]}', 1)`,
		"INSERT INTO document VALUES (1, '" + document + "', 'docs', 'h', '1 60 0 keyword', '{}', 0, 1)",
		"INSERT INTO chunk VALUES (1, 1, 0, 4, NULL, 'Charles built the Analytical Engine.')",
		"INSERT INTO posting VALUES ('analyt', 1, x'0101')",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRefreshKeepsToTheFile(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, people)
	path := filepath.Join(dir, "kb.db")
	r := newReader(t)
	b := openBase(t, path, r.options(dir))
	if _, err := b.Refresh(t.Context(), nil); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("error %v", err)
	}
	build(t, b, "docs")
	r.asked()
	other := openBase(t, path, Options{ChunkSize: 20, Load: load.Options{Dir: dir}, Extraction: Extraction{Open: openAt(r.url)}})
	testfile.WriteFiles(t, dir, map[string]string{"docs/d.txt": "Mary was a friend."})
	report, err := other.Refresh(t.Context(), nil)
	if err != nil || report.Added != 1 || report.Asked != 1 || report.Chunks != 5 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestRefreshLeavesAStoppedRebuild stops a build with another size and another extractor, refreshes, and continues it.
func TestRefreshLeavesAStoppedRebuild(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, people)
	r := newReader(t)
	path := filepath.Join(dir, "kb.db")
	first := openBase(t, path, r.options(dir))
	build(t, first, "docs")
	for _, c := range []struct {
		name   string
		change func(*Options)
		stop   string // the first passage that is not answered; it is the last that is asked about
		asked  int    // when the build continues
	}{
		{"another extractor", func(o *Options) { o.Extraction.Model = "other" }, "nothing", 2}, // this passage and the new document
		{"another size", func(o *Options) { o.ChunkSize = 30 }, "where", 1},                    // the rest is known
	} {
		o := r.options(dir)
		o.Extraction.Calls = 1
		c.change(&o)
		r.answers(func(passage string) (string, int) {
			if strings.HasPrefix(passage, c.stop) {
				return "no", http.StatusUnauthorized
			}
			return capitals(passage)
		})
		other := openBase(t, path, o)
		if _, err := other.Build(t.Context(), []string{"docs"}, nil); err == nil {
			t.Errorf("%s: the build was not stopped", c.name)
		}
		r.answers(nil)
		testfile.WriteFiles(t, dir, map[string]string{"docs/0.txt": "For " + c.name + "."})
		if report, err := first.Refresh(t.Context(), nil); err != nil || !report.Changed || report.Asked != 1 || report.Entities != 6 {
			t.Errorf("%s: refreshed %+v, %v", c.name, report, err)
		}
		r.asked()
		if report := build(t, other, "docs"); report.Asked != c.asked || !report.Changed {
			t.Errorf("%s: the build continued with %+v, asked %q", c.name, report, r.asked())
		}
		build(t, first, "docs")
	}
}

const killedChunks = 60

func killedOptions(dir, url string) Options {
	return Options{ChunkSize: 80, Load: load.Options{Dir: dir}, Extraction: Extraction{Model: "reader", Open: openAt(url)}}
}

// extractIfTold is the child process of TestKilledExtraction if a variable says so.
func extractIfTold() {
	dir, url := os.Getenv("RAG_TEST_EXTRACT"), os.Getenv("RAG_TEST_URL")
	if dir == "" {
		return
	}
	b, err := Open(filepath.Join(dir, "kb.db"), killedOptions(dir, url))
	if err == nil {
		_, err = b.Build(context.Background(), []string{"docs"}, func(p Progress) { fmt.Println("asked", p.Asked) })
	}
	fmt.Println("end", err)
	os.Exit(0)
}

// TestKilledExtraction kills a build while the model is asked, twice. No answer that was kept is asked for again.
func TestKilledExtraction(t *testing.T) {
	dir := t.TempDir()
	for i := range killedChunks {
		testfile.WriteFiles(t, dir, map[string]string{fmt.Sprintf("docs/%02d.txt", i): fmt.Sprintf("Person%s met City%s.", letters2(i), letters2(i%7))})
	}
	r := newReader(t)
	kept := map[string]bool{}
	for _, at := range []int{20, 20} {
		hold := make(chan struct{})
		answered := map[string]bool{} // by passage: a call of the process that was killed before may come late
		r.answers(func(passage string) (string, int) {
			r.mu.Lock()
			late := len(answered) == at && !answered[passage]
			if !late {
				answered[passage] = true
			}
			r.mu.Unlock()
			if late {
				<-hold // until the process is dead
			}
			return capitals(passage)
		})
		killExtraction(t, dir, r.url, at)
		close(hold)
		asked := r.asked()
		for _, passage := range asked {
			if kept[passage] {
				t.Errorf("%q was asked about again", passage)
			}
		}
		for _, passage := range keptIn(t, dir) {
			kept[passage] = true
		}
		if len(kept) == 0 {
			t.Fatal("nothing was kept")
		}
	}
	if len(kept) != 40 {
		t.Errorf("%d answers were kept, want 40", len(kept))
	}
	r.answers(nil)
	b := openBase(t, filepath.Join(dir, "kb.db"), killedOptions(dir, r.url))
	if report := build(t, b, "docs"); report.Asked != killedChunks-40 {
		t.Errorf("report %+v", report)
	}
	whole := openBase(t, filepath.Join(dir, "whole.db"), killedOptions(dir, r.url))
	build(t, whole, "docs")
	if diff := cmp.Diff(graphOf(t, whole), graphOf(t, b)); diff != "" {
		t.Errorf("entities (-whole +killed):\n%s", diff)
	}
}

func letters2(i int) string { return string(rune('a'+i/10)) + string(rune('a'+i%10)) }

// keptIn returns the texts for which a base has answers.
func keptIn(t *testing.T, dir string) (texts []string) {
	t.Helper()
	b := openBase(t, filepath.Join(dir, "kb.db"), Options{})
	rows, err := b.db.Query("SELECT text FROM chunk WHERE extract IS NOT NULL")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	return texts
}

// killExtraction starts a build in a separate process and kills it when so many answers are stored.
func killExtraction(t *testing.T, dir, url string, at int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "RAG_TEST_EXTRACT="+dir, "RAG_TEST_URL="+url)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "end") {
			t.Fatalf("the build ended before answer %d: %s", at, lines.Text())
		}
		if lines.Text() == fmt.Sprint("asked ", at) {
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // its error is the kill
}
