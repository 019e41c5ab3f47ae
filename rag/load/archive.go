package load

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// An archive is a document in the form of a ZIP file with XML files.
type archive struct {
	kind string // as messages name it
	zip  *zip.Reader
	left int64 // remaining bytes of markup that may be read: a small file can unpack to a very large one
	most int64 // bytes of text
}

const (
	markupShare = 4       // how many times as large as the text its markup may be
	maxParts    = 20_000  // files in an archive
	maxNested   = 1000    // nested elements
	maxPiece    = 2 << 20 // bytes of one tag, or of the text between two tags
)

// openArchive opens a document of a kind, whose text may have most bytes.
func openArchive(data []byte, kind string, most int64) (*archive, error) {
	a := &archive{kind: kind, left: markupShare * most, most: most}
	if bytes.Count(data, []byte("PK\x01\x02")) > maxParts {
		return nil, a.brokenError(fmt.Errorf("it holds more than %d files", maxParts))
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, a.brokenError(err)
	}
	a.zip = z
	return a, nil
}

func (a *archive) brokenError(err error) error {
	return fmt.Errorf("a broken %s file: %w", a.kind, err)
}

func (a *archive) hasFile(name string) bool {
	for _, f := range a.zip.File {
		if f.Name == name {
			return true
		}
	}
	return false
}

// A markupReader reads a file of an archive within the limits.
type markupReader struct {
	archive *archive
	from    io.Reader
	read    int64
	piece   int64 // start of the piece that is being read; -1: the size of pieces is not limited
}

var errLargePiece = errors.New("a tag, or the text between two tags, is too large")

// Read implements [io.Reader].
func (r *markupReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.read += int64(n)
	if r.archive.left -= int64(n); r.archive.left < 0 {
		return 0, fmt.Errorf("too large: it unpacks to more than %s; divide it, or leave it out", formatMegabytes(markupShare*r.archive.most))
	}
	if r.piece >= 0 && r.read-r.piece > maxPiece {
		return 0, errLargePiece
	}
	return n, err
}

// A visitor gets the parts of an XML file. Names are without their namespaces.
type visitor struct {
	start func(name string, attribute func(string) string)
	end   func(name string)
	text  func([]byte)
	size  func() int // bytes of the text so far
}

// visitXML reads an XML file of the archive.
func (a *archive) visitXML(name string, v visitor) error {
	f, err := a.zip.Open(name)
	if err != nil {
		return a.brokenError(fmt.Errorf("it holds no %s", name))
	}
	defer f.Close()
	r := &markupReader{archive: a, from: f}
	d := xml.NewDecoder(r)
	depth := 0
	for {
		r.piece = r.read
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return a.brokenError(fmt.Errorf("%s: %w", name, err))
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; depth > maxNested {
				return a.brokenError(fmt.Errorf("%s: its elements are nested more than %d deep", name, maxNested))
			}
			v.start(t.Name.Local, func(key string) string { return xmlAttribute(t, key) })
		case xml.EndElement:
			depth--
			v.end(t.Name.Local)
		case xml.CharData:
			v.text(t)
		}
		if int64(v.size()) > a.most {
			return tooLarge(int64(v.size()), a.most)
		}
	}
}

func xmlAttribute(t xml.StartElement, key string) string {
	for _, a := range t.Attr {
		if a.Name.Local == key {
			return a.Value
		}
	}
	return ""
}

// A markdownWriter collects paragraphs, headings, items of lists and rows of tables as Markdown.
type markdownWriter struct {
	out       strings.Builder
	paragraph strings.Builder
	level     int // of the heading; 0: the paragraph is not a heading
	item      bool
	row       strings.Builder
	cells     int  // depth of nested cells
	filled    bool // the cell holds text
}

func (w *markdownWriter) textSize() int { return w.out.Len() + w.paragraph.Len() + w.row.Len() }

func (w *markdownWriter) startRow() {
	if w.cells == 0 {
		w.row.Reset()
		w.row.WriteByte('|')
	}
}

func (w *markdownWriter) startCell() {
	if w.cells++; w.cells == 1 {
		w.filled = false
		w.row.WriteByte(' ')
	}
}

func (w *markdownWriter) endCell() {
	if w.cells--; w.cells == 0 {
		w.row.WriteString(" |")
	}
}

func (w *markdownWriter) endRow() {
	if w.cells == 0 {
		w.out.WriteString(w.row.String() + "\n")
		w.row.Reset()
	}
}

func (w *markdownWriter) endTable() { w.out.WriteByte('\n') }

func (w *markdownWriter) endParagraph() {
	text := strings.TrimSpace(w.paragraph.String())
	level := w.level
	item := w.item
	w.paragraph.Reset()
	w.level = 0
	w.item = false
	switch {
	case text == "":
	case w.cells > 0:
		if w.filled {
			w.row.WriteByte(' ')
		}
		w.filled = true
		w.row.WriteString(strings.ReplaceAll(text, "\n", " "))
	case level > 0:
		w.out.WriteString(strings.Repeat("#", level) + " " + text + "\n\n")
	case item:
		w.out.WriteString("- " + text + "\n\n")
	default:
		w.out.WriteString(text + "\n\n")
	}
}

func (w *markdownWriter) trimmedText() string { return strings.TrimSpace(w.out.String()) + "\n" }
