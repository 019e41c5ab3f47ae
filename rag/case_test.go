package rag

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/rag/keyword"
	"raddle.dev/rag/load"
	"raddle.dev/rag/split"
)

// A table is a conformance case of kind unit. The other cases run in package flow.
type table struct {
	ID        string   `yaml:"id"`
	Unit      string   `yaml:"unit"`
	Documents []string `yaml:"documents"`
	Tree      []string `yaml:"tree"`
	Rows      []row    `yaml:"rows"`
}

type row struct {
	Vector  []string `yaml:"vector"`
	Keyword []string `yaml:"keyword"`
	Graph   []string `yaml:"graph"`
	TopK    int      `yaml:"top_k"`

	Query     string `yaml:"query"`
	WantSet   []int  `yaml:"want_set"`
	WantFirst *int   `yaml:"want_first"`

	In         string   `yaml:"in"`
	Size       int      `yaml:"size"`
	Overlap    int      `yaml:"overlap"`
	Separators []string `yaml:"separators"`
	Ext        string   `yaml:"ext"`

	Context string    `yaml:"context"`
	Sources string    `yaml:"sources"`
	Pattern string    `yaml:"pattern"`
	Want    yaml.Node `yaml:"want"`
}

// tables run one row each.
var tables = map[string]func(t *testing.T, c table, r row){
	"rrf":         fusionRow,
	"bm25_rank":   keywordRow,
	"split_text":  splitRow,
	"glob_select": globRow,
	"rag_output":  outputRow,
}

func TestTables(t *testing.T) {
	ran := map[string]bool{}
	for _, dir := range append([]string{"../flow/testdata/cases", "testdata"}, filepath.SplitList(os.Getenv("RADDLE_CASES"))...) {
		for _, pattern := range []string{"*.yaml", "cases/*.yaml"} {
			files, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				runTable(t, f, ran)
			}
		}
	}
	for _, unit := range []string{"rrf", "bm25_rank", "glob_select", "rag_output"} {
		if !ran[unit] {
			t.Errorf("no case of unit %s was found", unit)
		}
	}
}

func runTable(t *testing.T, file string, ran map[string]bool) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var head struct {
		Unit string `yaml:"unit"`
	}
	if yaml.Unmarshal(text, &head) != nil || tables[head.Unit] == nil {
		return
	}
	var c table
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	ran[c.Unit] = true
	t.Run(c.ID, func(t *testing.T) {
		for _, r := range c.Rows {
			tables[c.Unit](t, c, r)
		}
	})
}

// same compares got with what the row wants.
func same[T any](t *testing.T, r row, what any, got T) {
	t.Helper()
	var want T
	if err := r.Want.Decode(&want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%v (-want +got):\n%s", what, diff)
	}
}

func fusionRow(t *testing.T, _ table, r row) {
	got, _ := fuseRanks(r.TopK, ranking[string]{weight: rankWeights.Meaning, ids: r.Vector},
		ranking[string]{weight: rankWeights.Words, ids: r.Keyword}, ranking[string]{weight: rankWeights.Entities, ids: r.Graph})
	same(t, r, r, append([]string{}, got[:min(r.TopK, len(got))]...))
}

// keywordRow ranks in a base, in which every document is one chunk.
func keywordRow(t *testing.T, c table, r row) {
	dir := t.TempDir()
	for i, text := range c.Documents {
		testfile.WriteFiles(t, dir, map[string]string{"docs/" + string(rune('a'+i)): text})
	}
	b := openBase(t, filepath.Join(dir, "kb.db"), Options{ChunkSize: 1000, Load: load.Options{Dir: dir}})
	build(t, b, "docs")
	got := []int{}
	for _, name := range paths(t, b, r.Query, len(c.Documents)) {
		got = append(got, int(name[0]-'a'))
	}
	if r.WantFirst != nil && (len(got) == 0 || got[0] != *r.WantFirst) {
		t.Errorf("%q finds %v, first should be %d", r.Query, got, *r.WantFirst)
	}
	if r.WantSet != nil {
		slices.Sort(got)
		if !slices.Equal(got, r.WantSet) {
			t.Errorf("%q finds %v, want %v", r.Query, got, r.WantSet)
		}
	}
	if !r.Want.IsZero() {
		same(t, r, r.Query+" "+strings.Join(keyword.Tokens(r.Query), " "), got)
	}
}

func splitRow(t *testing.T, _ table, r row) {
	if r.Separators == nil {
		r.Separators = split.Separators(r.Ext)
	}
	got := split.Text(r.In, split.Options{Size: r.Size, Overlap: r.Overlap, Separators: r.Separators})
	same(t, r, r.In, append([]string{}, got...))
}

func globRow(t *testing.T, c table, r row) {
	dir := t.TempDir()
	for _, name := range c.Tree {
		testfile.WriteFiles(t, dir, map[string]string{name: name})
	}
	entries, problems, err := load.List(t.Context(), []string{r.Pattern}, load.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if !errors.Is(p, load.ErrNoDocuments) {
			t.Error(p)
		}
	}
	got := []string{}
	for _, e := range entries {
		name, err := filepath.Rel(dir, e.Path)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, filepath.ToSlash(name))
	}
	slices.Sort(got)
	same(t, r, r.Pattern, got)
}

func outputRow(t *testing.T, _ table, r row) {
	same(t, r, r.Sources, map[string]any{"context": r.Context, "sources": anyList(ParseSources(r.Sources))})
}

func anyList(texts []string) []any {
	all := []any{}
	for _, s := range texts {
		all = append(all, s)
	}
	return all
}
