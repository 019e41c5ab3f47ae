package rag

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/rag/load"
	"raddle.dev/rag/split"
)

func TestPlacesAsText(t *testing.T) {
	for want, p := range map[string]Place{
		"":                              {},
		"page 3":                        {Page: 3, LastPage: 3},
		"pages 3–4":                     {Page: 3, LastPage: 4},
		"sheet Prices, rows 2–9":        {Sheet: "Prices", Row: 2, LastRow: 9},
		"sheet Two lines":               {Sheet: "Two\nlines"},
		"row 2":                         {Row: 2},
		"message 7, Re: the pay > Late": {Message: 7, Headings: []string{"Re: the pay", "Late"}},
		"Absence > Notice":              {Headings: []string{"Absence", "Notice"}, Line: 3, LastLine: 9},
		"lines 3–9":                     {Line: 3, LastLine: 9},
	} {
		if got := p.String(); got != want || p.IsZero() != (want == "") {
			t.Errorf("%+v is %q, want %q", p, got, want)
		}
	}
}

func TestSections(t *testing.T) {
	text := "intro\n# One #\na\n```sh\n# no heading\n```\n### Deep\nb\n## Two\nc\n#no\n####### no\n#\n# Last\n~~~~\n~~~\n# no\n"
	want := []section{
		{0, nil}, {6, []string{"One"}}, {strings.Index(text, "### Deep"), []string{"One", "Deep"}},
		{strings.Index(text, "## Two"), []string{"One", "Two"}}, {strings.Index(text, "# Last"), []string{"Last"}},
	}
	if diff := cmp.Diff(want, listSections(text), cmp.AllowUnexported(section{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHeadingsOfAChunk(t *testing.T) {
	text := "# Title\n\n## Short\n\nx\n\n## Long\n\nThis section has far more bytes than the one before it.\n"
	p := newPlacer(load.Document{Text: text, Ext: "md", Lines: true})
	long := strings.Index(text, "## Long")
	for name, c := range map[string]struct {
		chunk split.Chunk
		want  Place
	}{
		"the whole":    {split.Chunk{Start: 0, End: len(text) - 1}, Place{Headings: []string{"Title", "Long"}, Line: 1, LastLine: 9}},
		"the first":    {split.Chunk{Start: 9, End: long - 2}, Place{Headings: []string{"Title", "Short"}, Line: 3, LastLine: 5}},
		"from its end": {split.Chunk{Start: long, End: long + 7}, Place{Headings: []string{"Title", "Long"}, Line: 7, LastLine: 7}},
	} {
		if diff := cmp.Diff(c.want, p.findPlace(c.chunk)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

const mailbox = `From ada@example.com Mon Jan  5 10:00:00 2026
Subject: The pay
From: ada@example.com

It comes on the 25th.
>From now on, that is.

From bob@example.com Tue Jan  6 10:00:00 2026
Subject: =?utf-8?q?Caf=C3=A9?=
Content-Transfer-Encoding: quoted-printable

It opens at nine=2E
`

// TestWherePassagesStand builds a base of documents of several kinds, and asks for a passage of each.
func TestWherePassagesStand(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{
		"docs/a.md":      "# Handbook\n\n## Leave\n\nEverybody has thirty days.\n\n## Notice\n\nFour weeks of notice.\n",
		"docs/code.go":   "package a\n\n// Walrus swims.\nfunc Walrus() {\n\tprintln(1)\n}\n\n// Heron waits.\nfunc Heron() {\n\tprintln(2)\n}\n",
		"docs/t.csv":     "name;price\nkolibri;3\nstork;5\nswift;7\n",
		"docs/all.mbox":  mailbox,
		"docs/plain.txt": "one\n\ntwo lemurs\n",
	})
	b := openBase(t, filepath.Join(dir, "kb.db"), Options{ChunkSize: 60, Load: load.Options{Dir: dir}})
	if r := build(t, b, "docs"); len(r.Problems) > 0 {
		t.Fatal(r.Problems)
	}
	for query, want := range map[string]string{
		"notice":     "a.md, Handbook > Notice",
		"heron":      "code.go, lines 9–11",
		"stork":      "t.csv, rows 2–3",
		"25th":       "all.mbox, message 1, The pay",
		"opens nine": "all.mbox, message 2, Café",
		"lemurs":     "plain.txt",
	} {
		hits := searchWith(t, b, query, 1, Weights{})
		if len(hits) != 1 {
			t.Errorf("%q finds %d passages", query, len(hits))
			continue
		}
		if got := strings.TrimPrefix(hits[0].Citation(), filepath.Join(dir, "docs")+"/"); got != want {
			t.Errorf("%q is in %q, want %q; the text is %q", query, got, want, hits[0].Text)
		}
		if context := FormatContext(hits); !strings.HasPrefix(context, "[Source: "+hits[0].Citation()+"]\n") {
			t.Errorf("the context of %q is %q", query, context)
		}
	}
}

// TestPagesAndSheets has the page of a PDF and the row of a sheet.
func TestPagesAndSheets(t *testing.T) {
	pdf := load.Document{Text: "first page\n\nsecond page\n\nthird page\n\n",
		Marks: []load.Mark{{At: 0, Page: 1}, {At: 12, Page: 2}, {At: 25, Page: 3}}}
	p := newPlacer(pdf)
	for want, c := range map[string]split.Chunk{
		"page 1":    {Start: 0, End: 10},
		"page 2":    {Start: 12, End: 23},
		"pages 1–3": {Start: 6, End: 30},
	} {
		if got := p.findPlace(c).String(); got != want {
			t.Errorf("%+v is on %q, want %q", c, got, want)
		}
	}
	sheet := load.Document{Text: "## Prices\n\na: 1\n\na: 2\n\n## Other\n\nb: 1\n", Ext: "md", Marks: []load.Mark{
		{At: 0, Sheet: "Prices"}, {At: 11, Sheet: "Prices", Row: 2}, {At: 17, Sheet: "Prices", Row: 5}, {At: 23, Sheet: "Other"}, {At: 33, Sheet: "Other", Row: 1}}}
	p = newPlacer(sheet)
	for want, c := range map[string]split.Chunk{
		"sheet Prices, rows 2–5": {Start: 0, End: 21},
		"sheet Prices, row 5":    {Start: 17, End: 21},
		"sheet Other, row 1":     {Start: 23, End: 37},
	} {
		if got := p.findPlace(c).String(); got != want {
			t.Errorf("%+v is in %q, want %q", c, got, want)
		}
	}
}

// TestBaseWithoutPlaces refreshes a base of an earlier version: it stays without places, and a new build adds them and
// embeds nothing again.
func TestBaseWithoutPlaces(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, animals)
	m := &countingModel{Embedder: &wordModel{dims: 64}}
	b := openBase(t, filepath.Join(dir, "kb.db"), withModel(m, dir))
	build(t, b, "docs")
	const older = `UPDATE base SET settings = json_remove(settings, '$.places'), builds = builds + 1;
		UPDATE document SET recipe = '1' || substr(recipe, 2); UPDATE chunk SET stands = ''`
	if _, err := b.db.ExecContext(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	m.texts = 0
	if r, err := b.Refresh(t.Context(), nil); err != nil || r.Added > 0 || r.Changed {
		t.Errorf("a refresh: %+v, %v", r, err)
	}
	if hits := searchWith(t, b, "lion", 1, Weights{Words: 1}); !hits[0].Place.IsZero() {
		t.Errorf("a place from nowhere: %+v", hits[0])
	}
	if r := build(t, b, "docs"); r.Added != 3 || m.texts > 0 {
		t.Errorf("a new build: %+v, %d texts embedded", r, m.texts)
	}
	if hits := searchWith(t, b, "lion", 1, Weights{Words: 1}); hits[0].Place.Line != 3 {
		t.Errorf("after a new build: %+v", hits[0])
	}
	if s, err := b.Status(t.Context()); err != nil || s.Documents != 3 || s.Pending != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}
