package load

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unsafe"

	"raddle.dev/rag/pdftext"
)

// Text returns the text of the file. It may start programs, which have ended when it returns.
func (f *File) Text(ctx context.Context) (Document, error) {
	doc, err := f.readText(ctx)
	if err == nil {
		doc.Warning = joinNotes(doc.Warning, longWordsWarning(doc.Text))
		doc.Date = f.findDate(&doc)
	}
	return doc, err
}

func (f *File) readText(ctx context.Context) (Document, error) {
	e := f.entry
	doc := Document{Ext: e.ext, Metadata: e.metadata}
	var err error
	if command := e.o.Loaders[e.ext]; command != "" {
		doc.Ext = ""
		var out []byte
		if out, err = f.convertFile(ctx, command); err == nil {
			doc.Text, doc.Warning, err = plainText(out)
		}
		return doc, err
	}
	err = findReader(e.ext)(f, ctx, &doc)
	if most := e.o.maxBytes(); err == nil && int64(len(doc.Text)) > most {
		err = tooLarge(int64(len(doc.Text)), most)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, pdftext.ErrBusy) {
		err = &RefusedError{err}
	}
	return doc, err
}

// A RefusedError is the error of a document that will be refused again as long as its bytes are the same.
type RefusedError struct{ Err error }

// Error says what is wrong with the document.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// A reader sets the text of a file.
type reader = func(f *File, ctx context.Context, doc *Document) error

// findReader returns the reader of an extension. What has none of its own is plain text.
func findReader(ext string) reader {
	switch ext {
	case "csv", "tsv":
		return (*File).asTable
	case "json":
		return (*File).asJSON
	case "pdf":
		return (*File).asPDF
	case "docx":
		return asMarkdown(wordText)
	case "pptx":
		return asMarkdown(slidesText)
	case "xlsx":
		return (*File).asSheets
	case "epub":
		return asMarkdown(bookText)
	case "odt", "ods", "odp":
		return openDocument(strings.ToUpper(ext))
	case "html", "htm", "xhtml":
		return (*File).asPage
	case "ipynb":
		return (*File).asNotebook
	case "eml":
		return (*File).asMail
	case "mbox":
		return (*File).asMailbox
	}
	return (*File).asLines
}

// asLines reads a text whose lines are those of the file.
func (f *File) asLines(ctx context.Context, doc *Document) error {
	doc.Lines = true
	return f.asText(ctx, doc)
}

func (f *File) asText(_ context.Context, doc *Document) (err error) {
	doc.Text, doc.Warning, err = plainText(f.data)
	return err
}

func (f *File) asTable(ctx context.Context, doc *Document) error {
	err := f.asText(ctx, doc)
	doc.Text, doc.Marks = tableText(doc.Text, f.entry.ext, f.entry.o.maxBytes())
	return err
}

func (f *File) asJSON(ctx context.Context, doc *Document) error {
	err := f.asText(ctx, doc)
	doc.Text = jsonText(doc.Text, f.entry.o.maxBytes())
	return err
}

func (f *File) asPage(_ context.Context, doc *Document) (err error) {
	var page string
	if page, doc.Warning, err = pageSource(f.data); err != nil {
		return err
	}
	doc.Ext = "md"
	doc.Text, err = pageText(page, f.entry.o.maxBytes())
	return err
}

// asMarkdown returns a reader of documents whose text becomes Markdown.
func asMarkdown(read func(data []byte, most int64) (string, error)) reader {
	return func(f *File, _ context.Context, doc *Document) (err error) {
		doc.Ext = "md"
		doc.Text, err = read(f.data, f.entry.o.maxBytes())
		return err
	}
}

// openDocument returns a reader of the kinds of documents that share one format.
func openDocument(kind string) reader {
	return asMarkdown(func(data []byte, most int64) (string, error) { return openDocumentText(data, kind, most) })
}

func (f *File) asPDF(ctx context.Context, doc *Document) error {
	doc.Ext = ""
	text, err := f.pdfText(ctx)
	doc.Text = text.Text
	for i, at := range text.Pages {
		doc.Marks = append(doc.Marks, Mark{At: at, Page: i + 1})
	}
	return err
}

func (f *File) asSheets(_ context.Context, doc *Document) (err error) {
	doc.Ext = "md"
	doc.Text, doc.Marks, err = sheetsText(f.data, f.entry.o.maxBytes())
	return err
}

// joinNotes joins the notes about a document.
func joinNotes(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// A text of at least minLetters letters lacks its spaces if a fifth of the letters are in words of more than maxWord
// letters.
const (
	minLetters = 200
	maxWord    = 40
)

// longWordsWarning returns a warning if the text seems to lack the spaces between its words, as that of some PDF files
// does. Addresses and numbers do not count, nor do scripts that are written without spaces.
func longWordsWarning(text string) string {
	letters := 0
	inLong := 0
	word := 0
	endWord := func() {
		letters += word
		if word > maxWord {
			inLong += word
		}
		word = 0
	}
	for _, r := range text {
		if unicode.In(r, unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Hebrew, unicode.Arabic, unicode.Mn) {
			word++
		} else {
			endWord()
		}
	}
	endWord()
	if letters < minLetters || inLong*5 < letters {
		return ""
	}
	return fmt.Sprintf("%d%% of its letters are in words of more than %d letters: spaces seem to be missing, so searches will find little of it; "+
		"a program named in document_loaders may read it better", inLong*100/letters, maxWord)
}

// errBinary is the error of a file that is not text.
var errBinary = errors.New("a binary file, not text: name a loader for its extension in document_loaders, or leave it out")

// tableText writes each row as lines of "column: value", so that a chunk still says what its values are. A text that is
// not a table, or would become larger than most bytes, stays as it is. The marks say where rows begin.
func tableText(text, ext string, most int64) (string, []Mark) {
	comma := byte('\t')
	rest := text
	if ext != "tsv" {
		comma, rest = findSeparator(text)
	}
	guard := &fieldGuard{text: strings.NewReader(rest), comma: comma}
	r := newRowReader(guard, comma)
	heading, err := r.Read()
	if err != nil {
		return text, nil
	}
	r.ReuseRecord = true
	var b strings.Builder
	var marks []Mark
	for rows := 0; ; rows++ {
		guard.fields = 0
		row, err := r.Read()
		if errors.Is(err, io.EOF) && rows > 0 {
			return b.String(), marks
		}
		if err != nil || int64(b.Len()) > most {
			return text, nil // not a table, or only a heading
		}
		marks = addRow(marks, Mark{At: b.Len(), Row: rows + 2})
		for i, value := range row {
			if value = strings.TrimSpace(value); value == "" {
				continue
			}
			if i < len(heading) {
				b.WriteString(strings.TrimSpace(heading[i]) + ": ")
			}
			if b.WriteString(value + "\n"); int64(b.Len()) > most {
				return text, nil
			}
		}
		b.WriteString("\n")
	}
}

// newRowReader returns a reader of the rows of a table with a separator.
func newRowReader(text io.Reader, comma byte) *csv.Reader {
	r := csv.NewReader(text)
	r.FieldsPerRecord = -1
	r.LazyQuotes = true
	r.Comma = rune(comma)
	return r
}

// tableReader is part of the hash of CSV files: a change of it makes the next build read them again.
const tableReader = "\x00csv 2"

// How much of a table says what its separator is.
const (
	sampleRows  = 20
	sampleBytes = 64 << 10
)

// findSeparator returns the separator of a table, and the table without a first line that names it, as Excel writes
// one: the separator with which the first rows have the most fields, all of them as many; a comma if there is none.
func findSeparator(text string) (comma byte, table string) {
	first, rest, _ := strings.Cut(text, "\n")
	if named, ok := strings.CutPrefix(strings.TrimRight(first, "\r"), "sep="); ok && len(named) == 1 && strings.Contains(",;\t|", named) {
		return named[0], rest
	}
	comma = ','
	most := 1
	for _, c := range []byte{',', ';', '\t', '|'} {
		if n := countColumns(text, c); n > most {
			comma = c
			most = n
		}
	}
	return comma, text
}

// countColumns returns how many fields each of the first rows has with a separator; 0: not each has as many.
func countColumns(text string, comma byte) (n int) {
	r := newRowReader(&fieldGuard{text: strings.NewReader(text[:min(len(text), sampleBytes)]), comma: comma}, comma)
	for rows := 0; rows < sampleRows; rows++ {
		row, err := r.Read()
		switch {
		case err != nil && (rows > 0 && len(text) > sampleBytes || errors.Is(err, io.EOF)):
			return n // perhaps in the middle of a row
		case err != nil || rows > 0 && len(row) != n:
			return 0
		}
		n = len(row)
	}
	return n
}

// maxFields is the most fields of a row of a table.
const maxFields = 100_000

// A fieldGuard reads a text, and returns an error if one row has too many fields: the reader of rows would hold all of
// them in memory.
type fieldGuard struct {
	text   *strings.Reader
	comma  byte
	fields int // since the last row; the caller resets it
}

// Read implements [io.Reader].
func (g *fieldGuard) Read(p []byte) (int, error) {
	n, err := g.text.Read(p)
	if g.fields += bytes.Count(p[:n], []byte{g.comma}); g.fields > maxFields {
		return 0, errors.New("too many fields")
	}
	return n, err
}

// jsonText puts every value on a line of its own, so that there are places to cut. A text that is not one JSON value,
// such as JSON lines, or that would become larger than most bytes, stays as it is.
func jsonText(text string, most int64) string {
	if !json.Valid(unsafe.Slice(unsafe.StringData(text), len(text))) { // Valid only reads, so it needs no copy
		return text
	}
	w := indenter{most: int(most)}
	for i := 0; i < len(text); i++ {
		if w.out.Len() > w.most {
			return text
		}
		switch c := text[i]; c {
		case ' ', '\n', '\t', '\r':
		case '"':
			end := i + 1
			for ; text[end] != '"'; end++ {
				if text[end] == '\\' {
					end++
				}
			}
			w.writeValue(text[i : end+1])
			i = end
		default:
			w.writePunctuation(c)
		}
	}
	return w.out.String()
}

// maxIndent is the largest indentation of lines of JSON.
const maxIndent = 16

// An indenter writes JSON with a line for each value.
type indenter struct {
	out   strings.Builder
	most  int
	depth int
	empty bool // nothing follows the last opening bracket yet
}

func (w *indenter) breakLine() {
	w.out.WriteByte('\n')
	w.out.WriteString(strings.Repeat(" ", min(w.depth, maxIndent)))
}

func (w *indenter) writeValue(text string) {
	if w.empty {
		w.breakLine()
	}
	w.empty = false
	w.out.WriteString(text)
}

func (w *indenter) writePunctuation(c byte) {
	switch c {
	case '{', '[':
		w.writeValue(string(c))
		w.depth++
		w.empty = true
	case '}', ']':
		w.depth--
		if !w.empty {
			w.breakLine()
		}
		w.empty = false
		w.out.WriteByte(c)
	case ',':
		w.out.WriteByte(c)
		w.breakLine()
	case ':':
		w.out.WriteString(": ")
	default:
		w.writeValue(string(c))
	}
}
