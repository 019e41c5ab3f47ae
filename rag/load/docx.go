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

// wordText takes the text out of a DOCX file: paragraphs, headings as in Markdown, rows of tables on lines of their own.
func wordText(data []byte, most int64) (string, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return "", fmt.Errorf("a broken DOCX file: %w", err)
	}
	f, err := z.Open("word/document.xml")
	if err != nil {
		return "", errors.New("a broken DOCX file: it holds no word/document.xml")
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, 8*most+1)) // the text is a small part of its markup
	if err != nil {
		return "", fmt.Errorf("a broken DOCX file: %w", err)
	}
	if int64(len(body)) > 8*most {
		return "", tooLarge(int64(len(body)), 8*most)
	}
	var w word
	d := xml.NewDecoder(bytes.NewReader(body))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return strings.TrimSpace(w.out.String()) + "\n", nil
		}
		if err != nil {
			return "", fmt.Errorf("a broken DOCX file: %w", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			w.start(t)
		case xml.EndElement:
			w.end(t.Name.Local)
		case xml.CharData:
			if w.inText {
				w.paragraph.Write(t)
			}
		}
	}
}

// A word is a document being read.
type word struct {
	out       strings.Builder
	paragraph strings.Builder
	level     int // of the heading that the paragraph is; 0: it is none
	item      bool
	inText    bool
	row       []string // the cells so far
	cells     int      // how deep we are in cells
}

func (w *word) start(t xml.StartElement) {
	switch t.Name.Local {
	case "t":
		w.inText = true
	case "tab":
		w.paragraph.WriteByte(' ')
	case "br", "cr":
		w.paragraph.WriteByte('\n')
	case "pStyle":
		for _, a := range t.Attr {
			if a.Name.Local == "val" {
				w.level = headingLevel(a.Value)
			}
		}
	case "numPr":
		w.item = true
	case "tr":
		w.row = nil
	case "tc":
		w.cells++
		w.row = append(w.row, "")
	}
}

// headingLevel reads the level from the name of a style.
func headingLevel(style string) int {
	style = strings.ToLower(style)
	if style == "title" {
		return 1
	}
	if n, ok := strings.CutPrefix(style, "heading"); ok && len(n) == 1 && n >= "1" && n <= "6" {
		return int(n[0] - '0')
	}
	return 0
}

func (w *word) end(name string) {
	switch name {
	case "t":
		w.inText = false
	case "p":
		w.endParagraph()
	case "tc":
		w.cells--
	case "tr":
		if w.cells == 0 {
			w.out.WriteString("| " + strings.Join(w.row, " | ") + " |\n")
		}
	case "tbl":
		w.out.WriteByte('\n')
	}
}

func (w *word) endParagraph() {
	text := strings.TrimSpace(w.paragraph.String())
	level, item := w.level, w.item
	w.paragraph.Reset()
	w.level, w.item = 0, false
	switch {
	case text == "":
	case w.cells > 0 && len(w.row) > 0:
		cell := &w.row[len(w.row)-1]
		*cell = strings.TrimSpace(*cell + " " + strings.ReplaceAll(text, "\n", " "))
	case level > 0:
		w.out.WriteString(strings.Repeat("#", level) + " " + text + "\n\n")
	case item:
		w.out.WriteString("- " + text + "\n\n")
	default:
		w.out.WriteString(text + "\n\n")
	}
}
