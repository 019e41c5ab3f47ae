package rag

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/rag/load"
)

func TestSourcesOfAFilter(t *testing.T) {
	for source, want := range map[string]bool{
		"/home/kim/docs/pay/list.pdf": true, "list.pdf": true, "pay/list.pdf": true, "./pay/list.pdf": true, "pay": true, "docs/": true, "/home/kim": true,
		"*.pdf": true, "**/*.pdf": true, "docs/*/*.{md,pdf}": true, "docs/**": true, "/home/kim/docs/**/*.pdf": true,
		"ist.pdf": false, "*.md": false, "docs/*.pdf": false, "kim/pay": false, "ay": false,
	} {
		if got := matchesSource("/home/kim/docs/pay/list.pdf", source); got != want {
			t.Errorf("%q matches: %v", source, got)
		}
	}
	if !matchesSource("https://example.com/manual/a", "https://example.com/manual") || matchesSource("https://example.com/manuals/a", "https://example.com/manual") {
		t.Error("a page is found by another folder")
	}
}

// TestFilteredSearch searches by words, by meaning and by both in a part of the documents: the hits are those of the
// whole base that lie in it, in their order.
func TestFilteredSearch(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"docs/new.md":  "---\ntitle: x\ndate: 2026-03-01\n---\n\nThe zebra grazes.",
		"docs/old.md":  "---\ndate: 2019-03-01\n---\n\nThe zebra sleeps.",
		"docs/a.eml":   "Subject: zebra\nDate: Mon, 05 Jan 2026 10:00:00 +0000\n\nThe zebra writes.\n",
		"docs/b/x.txt": "The zebra runs.",
	}
	for i := range 30 {
		files["docs/many/"+strings.Repeat("m", i+1)+".txt"] = "The zebra" + strings.Repeat(" and a foal", i)
	}
	testfile.WriteFiles(t, dir, files)
	o := withModel(&wordModel{dims: 64}, dir)
	o.ChunkSize = 400
	o.Load.Loaders = map[string]string{"notes": `sh -c 'echo "[{\"path\":\"n1\",\"contents\":\"A zebra note.\",\"metadata\":{\"author\":\"kim\",\"date\":\"2026-02-02\"}}]"'`}
	b := openBase(t, filepath.Join(dir, "kb.db"), o)
	build(t, b, "docs", "notes:all")
	day := func(text string) time.Time {
		at, ok := load.ParseDate(text)
		if !ok {
			t.Fatal(text)
		}
		return at
	}
	for name, c := range map[string]struct {
		f    Filter
		want []string
	}{
		"a folder":       {Filter{Sources: []string{"docs/b"}}, []string{"x.txt"}},
		"two":            {Filter{Sources: []string{"*.eml", "docs/b"}}, []string{"a.eml", "x.txt"}},
		"dates":          {Filter{Since: day("2026-01-01"), Until: day("2026-03-01T00:00:00Z")}, []string{"a.eml", "n1"}},
		"since":          {Filter{Since: day("2026-02-03"), Sources: []string{"*.md"}}, []string{"new.md"}},
		"until":          {Filter{Until: day("2020-01-01")}, []string{"old.md"}},
		"metadata":       {Filter{Metadata: map[string]string{"author": "kim"}}, []string{"n1"}},
		"other metadata": {Filter{Metadata: map[string]string{"author": "lee"}}, nil},
	} {
		for _, w := range []Weights{{}, {Words: 1}, {Meaning: 1}} {
			hits, err := b.Search(t.Context(), "zebra", SearchOptions{TopK: 3, Filter: c.f, Fusion: &Fusion{Weights: w}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range hits {
				got = append(got, filepath.Base(h.Path))
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("%s, %+v: %v, want %v", name, w, got, c.want)
			}
		}
	}
	all := searchWith(t, b, "zebra", 40, Weights{Words: 1})
	inside, err := b.Search(t.Context(), "zebra", SearchOptions{TopK: 40, Filter: Filter{Sources: []string{"many"}}, Fusion: &Fusion{Weights: Weights{Words: 1}}})
	if err != nil || len(inside) != 30 {
		t.Fatalf("%d hits, %v", len(inside), err)
	}
	all = slices.DeleteFunc(all, func(h Hit) bool { return !strings.Contains(h.Path, "/many/") })
	for i, h := range inside {
		if h.Path != all[i].Path {
			t.Errorf("hit %d is %s, and %s in the whole base", i, h.Path, all[i].Path)
		}
	}
	for _, f := range []Filter{{Sources: []string{"[a"}}, {Sources: []string{""}}, {Since: day("2026-01-01"), Until: day("2026-01-01")}} {
		if _, err := b.Search(t.Context(), "zebra", SearchOptions{Filter: f}); err == nil {
			t.Errorf("%+v is accepted", f)
		}
	}
}
