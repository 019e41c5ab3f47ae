package load

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	textunicode "golang.org/x/text/encoding/unicode"
)

// Text takes the text out of the file. It may start programs, which are gone when it returns.
func (f *File) Text(ctx context.Context) (Document, error) {
	doc, err := f.readText(ctx)
	if err == nil {
		doc.Warning = longWordsWarning(doc.Text)
	}
	return doc, err
}

func (f *File) readText(ctx context.Context) (Document, error) {
	e := f.entry
	doc := Document{Ext: e.ext, Metadata: e.metadata}
	var err error
	if command := e.o.Loaders[e.ext]; command != "" {
		doc.Ext = ""
		doc.Text, err = f.convert(ctx, command)
		return doc, err
	}
	switch e.ext {
	case "csv", "tsv":
		doc.Text, err = tableText(f.data, e.ext)
	case "json":
		doc.Text, err = jsonText(f.data)
	case "html", "htm", "xhtml":
		if doc.Text, err = plainText(f.data); err == nil {
			doc.Ext = "md"
			doc.Text, err = pageText(doc.Text)
		}
	case "docx":
		doc.Ext = "md"
		doc.Text, err = wordText(f.data, e.o.maxBytes())
	case "pdf":
		doc.Ext = ""
		doc.Text, err = f.pdfText(ctx)
	default:
		doc.Text, err = plainText(f.data)
	}
	return doc, err
}

// A text of at least minLetters letters lacks its spaces if a fifth of them are in words of more than maxWord letters.
const (
	minLetters = 200
	maxWord    = 40
)

// longWordsWarning returns a warning if the text seems to lack the spaces between its words, as that of some PDF files does. Addresses and
// numbers do not count, nor do scripts that are written without spaces.
func longWordsWarning(text string) string {
	letters, inLong, word := 0, 0, 0
	for _, r := range text + " " {
		if unicode.In(r, unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Hebrew, unicode.Arabic, unicode.Mn) {
			word++
			continue
		}
		letters += word
		if word > maxWord {
			inLong += word
		}
		word = 0
	}
	if letters < minLetters || inLong*5 < letters {
		return ""
	}
	return fmt.Sprintf("%d%% of its letters are in words of more than %d letters: spaces seem to be missing, so searches will find little of it; "+
		"a program named in document_loaders may read it better", inLong*100/letters, maxWord)
}

// plainText decodes UTF-8, and UTF-16 that begins with its mark. Anything else is refused.
func plainText(data []byte) (string, error) {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		text, err := textunicode.UTF16(textunicode.LittleEndian, textunicode.ExpectBOM).NewDecoder().Bytes(data)
		return strings.ReplaceAll(string(text), "\r\n", "\n"), err
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
		return "", errors.New("a binary file, not text: name a loader for its extension in document_loaders, or leave it out")
	}
	if !utf8.Valid(data) {
		return "", invalidText(data)
	}
	return strings.ReplaceAll(string(data), "\r\n", "\n"), nil
}

func invalidText(data []byte) error {
	line := 1
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			return fmt.Errorf("not valid UTF-8: byte 0x%02x in line %d; save it as UTF-8", data[at], line)
		}
		if r == '\n' {
			line++
		}
		at += size
	}
	return errors.New("not valid UTF-8")
}

// tableText writes each row as lines of "column: value", so that a chunk still says what its values are.
func tableText(data []byte, ext string) (string, error) {
	text, err := plainText(data)
	if err != nil {
		return "", err
	}
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1
	r.LazyQuotes = true
	if ext == "tsv" {
		r.Comma = '\t'
	}
	rows, err := r.ReadAll()
	if err != nil || len(rows) < 2 {
		return text, nil // not a table after all, or no more than a heading
	}
	var b strings.Builder
	for _, row := range rows[1:] {
		for i, value := range row {
			if value = strings.TrimSpace(value); value == "" {
				continue
			}
			if i < len(rows[0]) {
				b.WriteString(strings.TrimSpace(rows[0][i]) + ": ")
			}
			b.WriteString(value + "\n")
		}
		b.WriteString("\n")
	}
	return b.String(), nil
}

// jsonText puts every value on a line of its own, so that there are places to cut.
func jsonText(data []byte) (string, error) {
	text, err := plainText(data)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if json.Indent(&b, []byte(text), "", " ") != nil {
		return text, nil // lines of JSON, or JSON with comments
	}
	return b.String(), nil
}
