package load

import "strconv"

// openDocumentText returns the text of an ODT, ODS or ODP file, without deleted text and remarks.
func openDocumentText(data []byte, kind string, most int64) (string, error) {
	a, err := openArchive(data, kind, most)
	if err != nil {
		return "", err
	}
	var w markdownWriter
	paragraphs := 0
	skipped := 0
	leftOut := func(name string) bool { return name == "tracked-changes" || name == "annotation" }
	err = a.visitXML("content.xml", visitor{
		start: func(name string, attribute func(string) string) {
			switch name {
			case "p", "h":
				if paragraphs++; name == "h" {
					level, _ := strconv.Atoi(attribute("outline-level"))
					w.level = min(max(level, 1), 6)
				}
			case "s", "tab":
				w.paragraph.WriteByte(' ')
			case "line-break":
				w.paragraph.WriteByte('\n')
			case "list-item":
				w.item = true
			case "table-row":
				w.startRow()
			case "table-cell":
				w.startCell()
			}
			if leftOut(name) {
				skipped++
			}
		},
		end: func(name string) {
			switch name {
			case "p", "h":
				paragraphs--
				w.endParagraph()
			case "table-cell":
				w.endCell()
			case "table-row":
				w.endRow()
			case "table":
				w.endTable()
			}
			if leftOut(name) {
				skipped--
			}
		},
		text: func(text []byte) {
			if paragraphs > 0 && skipped == 0 {
				w.paragraph.Write(text)
			}
		},
		size: w.textSize,
	})
	if err != nil {
		return "", err
	}
	return w.trimmedText(), nil
}
