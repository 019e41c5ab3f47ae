package load

import (
	"errors"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// sheetVersion is part of the hash of XLSX files: a change of it makes the next build read them again.
const sheetVersion = "\x00xlsx 2"

// sheetsText returns the text of an XLSX file: under a heading for each sheet a paragraph for each row, with a line
// "column: value" for each value. The first row of a sheet names the columns. Values are as the file stores them,
// except dates and times, which it stores as numbers of days. The marks say where sheets and rows begin.
func sheetsText(data []byte, most int64) (string, []Mark, error) {
	a, err := openArchive(data, "XLSX", most)
	if err != nil {
		return "", nil, err
	}
	shared, err := a.sharedStrings()
	if err != nil {
		return "", nil, err
	}
	book, err := a.workbook()
	if err != nil {
		return "", nil, err
	}
	if book.formats, err = a.cellFormats(); err != nil {
		return "", nil, err
	}
	book.shared = shared
	var out strings.Builder
	var marks []Mark
	for _, s := range book.sheets {
		marks = append(marks, Mark{At: out.Len(), Sheet: s.name})
		out.WriteString("## " + s.name + "\n\n")
		if marks, err = a.readSheet(s, &book, &out, marks); err != nil {
			return "", nil, err
		}
	}
	return strings.TrimSpace(out.String()) + "\n", marks, nil
}

const (
	maxStrings = 1_000_000 // texts that cells share
	maxCells   = 16_384    // the limit of the format for one row
)

// sharedStrings reads the texts that cells refer to by number.
func (a *archive) sharedStrings() (all []string, err error) {
	const name = "xl/sharedStrings.xml"
	if !a.hasFile(name) {
		return nil, nil
	}
	var b strings.Builder
	total := 0
	inText := false
	phonetic := false
	err = a.visitXML(name, visitor{
		start: func(name string, _ func(string) string) {
			inText = name == "t" && !phonetic
			phonetic = phonetic || name == "rPh"
		},
		end: func(name string) {
			inText = false
			switch name {
			case "rPh":
				phonetic = false
			case "si":
				if len(all) < maxStrings {
					all = append(all, b.String())
					total += b.Len()
				}
				b.Reset()
			}
		},
		text: func(text []byte) {
			if inText {
				b.Write(text)
			}
		},
		size: func() int { return total + b.Len() },
	})
	return all, err
}

// A sheetFile is a sheet of a workbook.
type sheetFile struct{ name, file string }

// workbookParts holds the data that the sheets of a file share.
type workbookParts struct {
	sheets   []sheetFile // in their order
	from1904 bool        // days are counted from 1904
	shared   []string    // texts that cells refer to by number
	formats  []dateFormat
}

// workbook lists the sheets, and says how days are counted.
func (a *archive) workbook() (book workbookParts, err error) {
	files := map[string]string{}
	nothing := visitor{end: func(string) {}, text: func([]byte) {}, size: func() int { return 0 }}
	relations := nothing
	visit := nothing
	relations.start = func(name string, attribute func(string) string) {
		if name == "Relationship" && len(files) < maxParts {
			target := attribute("Target")
			if !strings.HasPrefix(target, "/") {
				target = "xl/" + target
			}
			files[attribute("Id")] = strings.TrimPrefix(path.Clean(target), "/")
		}
	}
	if err := a.visitXML("xl/_rels/workbook.xml.rels", relations); err != nil {
		return book, err
	}
	inSheets := false
	visit.start = func(name string, attribute func(string) string) {
		inSheets = inSheets || name == "sheets"
		if name == "workbookPr" {
			v := attribute("date1904")
			book.from1904 = v == "1" || v == "true"
		}
		if file := files[attribute("id")]; inSheets && name == "sheet" && len(book.sheets) < maxParts && a.hasFile(file) {
			book.sheets = append(book.sheets, sheetFile{attribute("name"), file})
		}
	}
	if err := a.visitXML("xl/workbook.xml", visit); err != nil {
		return book, err
	}
	if len(book.sheets) == 0 {
		return book, a.brokenError(errors.New("it holds no sheets"))
	}
	return book, nil
}

// A sheetReader reads one sheet.
type sheetReader struct {
	out     *strings.Builder
	most    int // bytes of out
	book    *workbookParts
	heading map[int]string // of columns; nil: no row was read
	name    string         // of the sheet
	row     map[int]string
	number  int // of the row, from one
	marks   []Mark
	column  int
	kind    string // of the value of the cell
	style   string // the number of its style
	value   strings.Builder
	inValue bool
}

// readSheet adds the rows of a sheet to out, and their marks to marks.
func (a *archive) readSheet(f sheetFile, book *workbookParts, out *strings.Builder, marks []Mark) ([]Mark, error) {
	s := sheetReader{
		name:  f.name,
		out:   out,
		most:  int(a.most),
		book:  book,
		marks: marks,
	}
	err := a.visitXML(f.file, visitor{start: s.startElement, end: s.endElement, text: func(text []byte) {
		if s.inValue {
			s.value.Write(text)
		}
	}, size: func() int { return out.Len() + s.value.Len() }})
	return s.marks, err
}

func (s *sheetReader) startElement(name string, attribute func(string) string) {
	switch name {
	case "row":
		s.row = map[int]string{}
		s.column = -1
		s.number++
		if n, err := strconv.Atoi(attribute("r")); err == nil && n > 0 {
			s.number = n
		}
	case "c":
		s.column++
		if n := columnNumber(attribute("r")); n >= 0 {
			s.column = n
		}
		s.kind, s.style = attribute("t"), attribute("s")
		s.value.Reset()
	case "v", "t":
		s.inValue = true
	}
}

func (s *sheetReader) endElement(name string) {
	switch name {
	case "v", "t":
		s.inValue = false
	case "c":
		value := s.value.String()
		switch s.kind {
		case "s":
			n, err := strconv.Atoi(value)
			if value = ""; err == nil && n >= 0 && n < len(s.book.shared) {
				value = s.book.shared[n]
			}
		case "", "n":
			if n, err := strconv.Atoi(s.style); err == nil && n >= 0 && n < len(s.book.formats) {
				value = s.book.formats[n].text(value, s.book.from1904)
			}
		}
		if value = strings.TrimSpace(value); value != "" && s.row != nil && s.column < maxCells {
			s.row[s.column] = value
		}
	case "row":
		s.endRow()
	}
}

// endRow writes a row. The first row of a sheet is the heading of the others. It returns an error if the text is too
// large: many cells may share one text.
func (s *sheetReader) endRow() {
	if len(s.row) == 0 {
		return
	}
	s.marks = addRow(s.marks, Mark{At: s.out.Len(), Sheet: s.name, Row: s.number})
	for _, column := range sortedColumns(s.row) {
		if s.out.Len() > s.most {
			return
		}
		if name := s.heading[column]; name != "" {
			s.out.WriteString(name + ": ")
		}
		s.out.WriteString(s.row[column] + "\n")
	}
	s.out.WriteByte('\n')
	if s.heading == nil {
		s.heading = s.row
	}
}

func sortedColumns(row map[int]string) []int { return slices.Sorted(maps.Keys(row)) }

// columnNumber returns the column of a cell such as "AB12", counted from zero, or -1 if it has none.
func columnNumber(cell string) int {
	n := 0
	for i := 0; i < len(cell) && i < 4 && cell[i] >= 'A' && cell[i] <= 'Z'; i++ {
		n = n*26 + int(cell[i]-'A') + 1
	}
	return n - 1
}
