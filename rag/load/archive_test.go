package load

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testfile"
)

// makeArchive returns a ZIP file of these files.
func makeArchive(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		w, err := z.Create(files[i])
		if err == nil {
			_, err = w.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const (
	workbook  = `<workbook xmlns:r="r"><sheets><sheet name="Staff" sheetId="7" r:id="b"/><sheet name="Old" sheetId="8" r:id="a"/></sheets></workbook>`
	relations = `<Relationships><Relationship Id="a" Target="worksheets/sheet1.xml"/><Relationship Id="b" Target="/xl/worksheets/sheet2.xml"/></Relationships>`
	container = `<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>`
	contents  = `<package><manifest><item id="two" href="two.xhtml" media-type="application/xhtml+xml"/><item id="css" href="x.css" media-type="text/css"/>
		<item id="one" href="text/one%20.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="one"/><itemref idref="two"/><itemref idref="one"/></spine></package>`
)

func TestOfficeFormats(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
		want  string
	}{
		{"a.xlsx", []string{"xl/workbook.xml", workbook, "xl/_rels/workbook.xml.rels", relations,
			"xl/sharedStrings.xml", `<sst><si><t>Name</t></si><si><r><t>An</t></r><r><t>n</t></r><rPh><t>x</t></rPh></si></sst>`,
			"xl/worksheets/sheet1.xml", `<worksheet><sheetData><row><c t="str"><f>A()</f><v>alone</v></c></row></sheetData></worksheet>`,
			"xl/worksheets/sheet2.xml", `<worksheet><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" t="inlineStr"><is><t>Age</t></is></c></row>
				<row r="3"><c r="A3" t="s"><v>1</v></c><c r="C3"><v>31</v></c></row><row r="4"><c r="AA4" t="s"><v>99</v></c><c r="C4"><v>7.5</v></c></row></sheetData></worksheet>`},
			"## Staff\n\nName\nAge\n\nName: Ann\nAge: 31\n\nAge: 7.5\n\n## Old\n\nalone\n"},
		{"a.pptx", []string{"ppt/slides/slide10.xml", `<p:sld xmlns:p="p" xmlns:a="a"><a:p><a:r><a:t>last</a:t></a:r></a:p></p:sld>`,
			"ppt/slides/slide2.xml", `<p:sld xmlns:p="p" xmlns:a="a"><a:p><a:r><a:t>Fir</a:t></a:r><a:r><a:t>st</a:t></a:r></a:p><a:tbl><a:tr><a:tc><a:p><a:t>A</a:t></a:p></a:tc><a:tc/></a:tr></a:tbl></p:sld>`,
			"ppt/notesSlides/notesSlide2.xml", `<p:notes xmlns:p="p" xmlns:a="a"><a:p><a:t>say it</a:t></a:p></p:notes>`, "ppt/slides/_rels/slide2.xml.rels", "<x/>"},
			"## Slide 1\n\nFirst\n\n| A |  |\n\nsay it\n\n## Slide 2\n\nlast\n"},
		{"a.odt", []string{"content.xml", `<o:d xmlns:o="o" xmlns:text="t" xmlns:table="b"><text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:h text:outline-level="2">Leave</text:h>
			<text:p>Thirty<text:s/>days<text:line-break/>a <text:span>year</text:span>.</text:p><text:list><text:list-item><text:p>one</text:p></text:list-item></text:list>
			<table:table><table:table-row><table:table-cell><text:p>A</text:p><text:p>B</text:p></table:table-cell><table:table-cell/></table:table-row></table:table></o:d>`},
			"## Leave\n\nThirty days\na year.\n\n- one\n\n| A B |  |\n"},
		{"a.epub", []string{"META-INF/container.xml", container, "OEBPS/book.opf", contents, "OEBPS/two.xhtml", "<p>The second</p>", "OEBPS/text/one .xhtml", "<h1>The first</h1>"},
			"# The first\n\nThe second\n\n"},
	} {
		dir := t.TempDir()
		testfile.WriteFiles(t, dir, map[string]string{c.name: string(makeArchive(t, c.files...))})
		texts, problems := read(t, Options{Dir: dir}, ".")
		if texts[c.name] != c.want || len(problems) > 0 {
			t.Errorf("%s: problems %v, text\n%q\nwant\n%q", c.name, problems, texts[c.name], c.want)
		}
	}
}

// TestHostileArchives reads small files that unpack to large or endless ones.
func TestHostileArchives(t *testing.T) {
	const most = 1 << 20
	word := func(body string) []byte { return makeArchive(t, "word/document.xml", body) }
	large := strings.Repeat("x", 3*most)
	shared := "<sst><si><t>" + large[:most/2] + "</t></si></sst>"
	cells := "<worksheet><row>" + strings.Repeat(`<c t="s"><v>0</v></c>`, 1000) + "</row></worksheet>"
	for name, c := range map[string]struct {
		read func([]byte, int64) (string, error)
		data []byte
		want string
	}{
		"much markup":       {wordText, word("<d>" + strings.Repeat("<p></p>", 2*most) + "</d>"), "too large"},
		"much text":         {wordText, word("<d>" + strings.Repeat("<p><t>some text</t></p>", most/8) + "</d>"), "too large"},
		"one long text":     {wordText, word("<d><p><t>" + large + "</t></p></d>"), "too large"},
		"one long tag":      {wordText, word("<d a='" + large + "'></d>"), errLargePiece.Error()},
		"deep":              {wordText, word(strings.Repeat("<tbl>", 5000)), "nested"},
		"cut off":           {wordText, word("<d><p>"), "a broken DOCX"},
		"no archive":        {bookText, []byte("PK\x03\x04"), "a broken EPUB"},
		"no sheets":         {sheetsOnly, makeArchive(t, "xl/_rels/workbook.xml.rels", "<x/>", "xl/workbook.xml", "<x/>"), "no sheets"},
		"no slides":         {slidesText, makeArchive(t, "a", "b"), "no slides"},
		"no chapters":       {bookText, makeArchive(t, "META-INF/container.xml", container, "OEBPS/book.opf", "<x/>"), "no chapters"},
		"an empty book":     {bookText, makeArchive(t, "META-INF/container.xml", container, "OEBPS/book.opf", contents, "OEBPS/two.xhtml", "", "OEBPS/text/one .xhtml", ""), "without text"},
		"one text for all":  {sheetsOnly, makeArchive(t, "xl/workbook.xml", workbook, "xl/_rels/workbook.xml.rels", relations, "xl/sharedStrings.xml", shared, "xl/worksheets/sheet1.xml", cells), "too large"},
		"very many entries": {slidesText, bytes.Repeat([]byte("PK\x01\x02"), maxParts+1), "files"},
	} {
		if text, err := c.read(c.data, most); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: text of %d bytes, error %v, want %q", name, len(text), err, c.want)
		}
	}
}

// sheetsOnly is sheetsText without the marks.
func sheetsOnly(data []byte, most int64) (string, error) {
	text, _, err := sheetsText(data, most)
	return text, err
}
