package rag

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"raddle.dev/rag/load"
	"raddle.dev/rag/split"
)

// A Place is the place of a chunk in its document. Fields that do not fit the kind of document are zero, and all are
// if the base was built by a version that did not keep places.
type Place struct {
	// Page and LastPage are the first and last page of a PDF, from one.
	Page     int `json:"page,omitempty"`
	LastPage int `json:"last_page,omitempty"`
	// Headings are those above the section in which most of the chunk stands, the outermost first.
	Headings []string `json:"headings,omitempty"`
	// Line and LastLine are the first and last line of a file of text, from one.
	Line     int `json:"line,omitempty"`
	LastLine int `json:"last_line,omitempty"`
	// Sheet is the sheet of a workbook. Row and LastRow are the first and last row in it or in a table, from one.
	Sheet   string `json:"sheet,omitempty"`
	Row     int    `json:"row,omitempty"`
	LastRow int    `json:"last_row,omitempty"`
	// Message is the message of a mailbox, from one.
	Message int `json:"message,omitempty"`
}

// IsZero reports whether nothing is known.
func (p Place) IsZero() bool {
	return p.Page == 0 && p.Line == 0 && p.Sheet == "" && p.Row == 0 && p.Message == 0 && len(p.Headings) == 0
}

// String returns the place for people and models, as "page 3", "sheet Prices, rows 2–9" or "Absence > Notice"; lines
// only if nothing else is known. It is empty if nothing is.
func (p Place) String() string {
	var parts []string
	add := func(one, several string, first, last int) {
		switch {
		case first == 0:
		case last <= first:
			parts = append(parts, fmt.Sprintf("%s %d", one, first))
		default:
			parts = append(parts, fmt.Sprintf("%s %d–%d", several, first, last))
		}
	}
	add("page", "pages", p.Page, p.LastPage)
	if p.Sheet != "" {
		parts = append(parts, "sheet "+strings.Join(strings.Fields(p.Sheet), " "))
	}
	add("row", "rows", p.Row, p.LastRow)
	add("message", "messages", p.Message, p.Message)
	if len(p.Headings) > 0 {
		parts = append(parts, strings.Join(p.Headings, " > "))
	}
	if len(parts) == 0 {
		add("line", "lines", p.Line, p.LastLine)
	}
	return strings.Join(parts, ", ")
}

// A placer finds the places of the chunks of one document.
type placer struct {
	doc      load.Document
	lines    []int // where lines begin, if they are those of the file
	sections []section
}

// A section is a part of a text below a heading.
type section struct {
	at       int
	headings []string // above it, with its own
}

func newPlacer(doc load.Document) *placer {
	p := &placer{doc: doc}
	if doc.Lines {
		p.lines = append(p.lines, 0)
		for i := range len(doc.Text) {
			if doc.Text[i] == '\n' {
				p.lines = append(p.lines, i+1)
			}
		}
	}
	if doc.Ext == "md" || doc.Ext == "mkd" {
		p.sections = listSections(doc.Text)
	}
	return p
}

// findPlace returns the place of a chunk.
func (p *placer) findPlace(c split.Chunk) (place Place) {
	if len(p.lines) > 0 {
		place.Line = lastAt(len(p.lines), func(i int) int { return p.lines[i] }, c.Start) + 1
		place.LastLine = lastAt(len(p.lines), func(i int) int { return p.lines[i] }, c.End-1) + 1
	}
	mark := func(i int) int { return p.doc.Marks[i].At }
	if i := lastAt(len(p.doc.Marks), mark, c.Start); i >= 0 {
		first := p.doc.Marks[i]
		last := p.doc.Marks[max(i, lastAt(len(p.doc.Marks), mark, c.End-1))]
		if first.Sheet == last.Sheet && first.Row == 0 && last.Row > 0 && i+1 < len(p.doc.Marks) {
			first = p.doc.Marks[i+1] // the chunk begins with the name of the sheet
		}
		place.Page = first.Page
		place.LastPage = last.Page
		place.Sheet = first.Sheet
		place.Row = first.Row
		place.Message = first.Message
		if first.Sheet == last.Sheet {
			place.LastRow = last.Row
		}
	}
	if place.Sheet == "" {
		place.Headings = p.findHeadings(c)
	}
	return place
}

// lastAt returns the index of the last of n ascending places that is not behind at; -1: all are.
func lastAt(n int, place func(i int) int, at int) int {
	return sort.Search(n, func(i int) bool { return place(i) > at }) - 1
}

// findHeadings returns the headings above the section that holds most bytes of a chunk.
func (p *placer) findHeadings(c split.Chunk) (headings []string) {
	from := max(0, lastAt(len(p.sections), func(i int) int { return p.sections[i].at }, c.Start))
	most := 0
	for i := from; i < len(p.sections) && p.sections[i].at < c.End; i++ {
		end := c.End
		if i+1 < len(p.sections) {
			end = min(end, p.sections[i+1].at)
		}
		if n := end - max(c.Start, p.sections[i].at); n > most {
			most = n
			headings = p.sections[i].headings
		}
	}
	return headings
}

// Limits of headings.
const (
	maxHeading  = 200     // bytes of one
	maxSections = 100_000 // of a document
)

// listSections finds the sections of a text in Markdown: those below lines that begin with one to six signs # and a
// space, outside of fenced blocks.
func listSections(text string) []section {
	sections := []section{{}}
	var open []string // the headings above, by their level; "" for a level without one
	fence := ""
	at := 0
	for line := range strings.Lines(text) {
		start := at
		at += len(line)
		line = strings.TrimSpace(line)
		if mark := fenceMark(line); mark != "" {
			switch {
			case fence == "":
				fence = mark
			case strings.HasPrefix(mark, fence) && strings.Trim(line, fence[:1]) == "":
				fence = ""
			}
		}
		level := len(line) - len(strings.TrimLeft(line, "#"))
		if fence != "" || level < 1 || level > 6 || len(line) == level || line[level] != ' ' || len(sections) > maxSections {
			continue
		}
		title := strings.Join(strings.Fields(strings.Trim(line, "#")), " ")
		if len(title) > maxHeading {
			title = strings.ToValidUTF8(title[:maxHeading], "") + "…"
		}
		for len(open) < level {
			open = append(open, "")
		}
		open = open[:level]
		open[level-1] = title
		headings := slices.DeleteFunc(slices.Clone(open), func(h string) bool { return h == "" })
		sections = append(sections, section{start, headings})
	}
	return sections
}

// fenceMark returns the signs with which a line begins or ends a fenced block; "" if it does neither.
func fenceMark(line string) string {
	for _, sign := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, sign)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}
