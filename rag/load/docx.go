package load

import "strings"

// wordText returns the text of a DOCX file: paragraphs, headings as in Markdown, each row of a table on a separate
// line.
func wordText(data []byte, most int64) (string, error) {
	a, err := openArchive(data, "DOCX", most)
	if err != nil {
		return "", err
	}
	var w markdownWriter
	err = a.visitXML("word/document.xml", w.visitor(func(name string, attribute func(string) string) {
		switch name {
		case "tab":
			w.paragraph.WriteByte(' ')
		case "cr":
			w.paragraph.WriteByte('\n')
		case "pStyle":
			w.level = headingLevel(attribute("val"))
		case "numPr":
			w.item = true
		}
	}))
	if err != nil {
		return "", err
	}
	return w.trimmedText(), nil
}

// visitor returns a visitor for the elements of paragraphs and tables that DOCX and PPTX share. It calls others for the
// start of every other element.
func (w *markdownWriter) visitor(others func(name string, attribute func(string) string)) visitor {
	inText := false
	return visitor{
		start: func(name string, attribute func(string) string) {
			switch name {
			case "t":
				inText = true
			case "br":
				w.paragraph.WriteByte('\n')
			case "tr":
				w.startRow()
			case "tc":
				w.startCell()
			default:
				others(name, attribute)
			}
		},
		end: func(name string) {
			switch name {
			case "t":
				inText = false
			case "p":
				w.endParagraph()
			case "tc":
				w.endCell()
			case "tr":
				w.endRow()
			case "tbl":
				w.endTable()
			}
		},
		text: func(text []byte) {
			if inText {
				w.paragraph.Write(text)
			}
		},
		size: w.textSize,
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
