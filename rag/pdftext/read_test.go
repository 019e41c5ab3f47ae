package pdftext

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// TestFilesOfOtherPrograms reads what testdata/make.sh makes: displacements in place of spaces, columns, rotated text, fonts without widths,
// words drawn one by one and in another order, forms.
func TestFilesOfOtherPrograms(t *testing.T) {
	files, err := filepath.Glob("testdata/*.pdf")
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(strings.TrimSuffix(file, "pdf") + "txt")
		if err != nil {
			t.Fatal(err)
		}
		got, err := Read(t.Context(), data, 1<<20)
		if diff := cmp.Diff(string(want), got); diff != "" || err != nil {
			t.Errorf("%s: error %v, text (-want +got):\n%s", file, err, diff)
		}
	}
}

func TestContent(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"space glyphs", "(one two) Tj", "one two"},
		{"displacements", "[(one) -250 (two) 20 (th) -15 (ree)] TJ", "one twothree"},
		{"a displacement without a glyph", "(one) Tj [-300] TJ (two) Tj", "one two"},
		{"a space and a displacement", "[(one ) -500 (two)] TJ", "one two"},
		{"words moved apart", "(one) Tj 24 0 Td (two) Tj", "one two"},
		{"lines", "14 TL (one) Tj T* (two) Tj (three) '", "one\ntwo\nthree"},
		{"lines by position", "(one) Tj 0 -14 TD (two) Tj T* (three) Tj", "one\ntwo\nthree"},
		{"paragraphs", "(a) Tj 0 -14 Td (b) Tj 0 -14 Td (c) Tj 0 -28 Td (d) Tj", "a\nb\nc\n\nd"},
		{"word space", "9 Tw (one two) Tj", "one two"},
		{"letter space", "4 Tc (one two) Tj", "one two"},
		{"narrow", "50 Tz [(one) -250 (two) -20 (three)] TJ", "one twothree"},
		{"index", "(H) Tj 3 Ts /F1 6 Tf (2) Tj 0 Ts /F1 12 Tf (O) Tj", "H2O"},
		{"turned", "0 1 -1 0 100 100 Tm [(one) -250 (two)] TJ", "one two"},
		{"scaled page", "q .1 0 0 .1 0 0 cm BT /F1 120 Tf 0 1 -1 0 1000 1000 Tm [(one) -250 (two)] TJ ET Q", "one two"},
		{"slanted", "1 0 .3 1 100 100 Tm [(one) -250 (two)] TJ", "one two"},
		{"hyphens", "14 TL (a divi-) Tj (ded word, x-) ' (Ray, http://a-) ' (b, 1-) ' (2) '", "a divided word, x-\nRay, http://a-\nb, 1-\n2"},
		{"escapes", `(a\(b\)\\\101\
c) Tj`, `a(b)\Ac`},
		{"nested", "((one)) Tj", "(one)"},
		{"hexadecimal", "<6F6e 65> Tj", "one"},
		{"quotes", "(\x93one\x94 \x80) Tj", "“one” €"},
		{"dictionaries", "/Span << /ActualText (x >>) /A << /B 1 >> >> BDC (one) Tj EMC", "one"},
		{"a picture", "ET BI /W 1 /H 1 ID ((<\x00\xff EI\nBT /F1 12 Tf 100 100 Td (one) Tj", "one"},
		{"printed twice", "(one) Tj .3 0 Td (one) Tj", "one"},
		{"cells", "(one) Tj 200 0 Td (two) Tj -200 -14 Td (three) Tj 200 0 Td (four) Tj", "one two\nthree four"},
		{"an unknown font", "/F9 12 Tf (one) Tj", "one"},
		{"too few operands", "Tm Td Tf Tj TJ ' \" cm Do q Q Q (one) Tj", ""},
		{"a string without an end", "(one) Tj (two", "one"},
		{"hexadecimal without an end", "(one) Tj <41", "one"},
		{"an array without an end", "(one) Tj [(a) [", "one"},
		{"a dictionary without an end", "(one) Tj << /A (", "one"},
		{"a comment", "% (a\n(one) Tj % (", "one"},
		{"no numbers", "--1 Ts 1-2 Tc 1.2.3 Tw (one two) Tj", "one two"},
	} {
		got, err := Read(t.Context(), makePDF("BT /F1 12 Tf 100 400 Td "+c.content+" ET"), 1<<20)
		if strings.TrimSpace(got) != c.want || err != nil {
			t.Errorf("%s: text %q, error %v, want %q", c.name, got, err, c.want)
		}
	}
}

// TestLoops reads files whose parts lead in a circle. Each is refused without waiting for the time limit.
func TestLoops(t *testing.T) {
	const separator = "\x00"
	objects := strings.Join(pageObjects("BT /F1 12 Tf (one) Tj ET"), separator)
	for _, c := range []struct{ name, old, new, want string }{
		{"page tree", "/Kids [4 0 R]", "/Kids [2 0 R]", errPageLoop.Error()},
		{"page tree that branches", "/Kids [4 0 R]", "/Kids [2 0 R 2 0 R 4 0 R 2 0 R]", errPageLoop.Error()},
		{"count", "/Count 1", "/Count 2000000000", ""},
		{"negative count", "/Count 1", "/Count -1", ""},
		{"form", "(one) Tj ET", "(one) Tj /X Do ET", ""},
		{"resources", "/Parent 2 0 R", "/Parent 4 0 R", ""},
		{"previous table", "", "", errTableLoop.Error()},
	} {
		if !strings.Contains(objects, c.old) {
			t.Fatal(c.old)
		}
		data := makeObjects(strings.Split(strings.Replace(objects, c.old, c.new, 1), separator)...)
		if c.name == "previous table" {
			table := bytes.LastIndex(data, []byte("\nxref\n")) + 1
			data = bytes.Replace(data, []byte("trailer\n<<"), fmt.Appendf(nil, "trailer\n<< /Prev %d", table), 1)
		}
		start := time.Now()
		text, err := Read(t.Context(), data, 1<<20)
		if c.want == "" && (err != nil || strings.TrimSpace(text) != "one") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: text %q, error %v, want %q", c.name, text, err, c.want)
		}
		if took := time.Since(start); took > maxTime/3 {
			t.Errorf("%s took %v", c.name, took)
		}
	}
}

// TestObjectsWithinThemselves reads files whose objects are packed into themselves, which would overflow the stack.
func TestObjectsWithinThemselves(t *testing.T) {
	row := func(kind byte, at, index int) string {
		return string([]byte{kind, byte(at >> 8), byte(at), byte(index)})
	}
	const table = "%PDF-1.5\n"
	for name, c := range map[string]struct{ catalog, pack, want string }{
		"in itself":                     {row(2, 1, 0), row(0, 0, 0), errTableLoop.Error()},
		"in each other":                 {row(2, 2, 0), row(2, 1, 0), errTableLoop.Error()},
		"whose length is within itself": {row(2, 2, 0), row(1, 200, 0), errNested.Error()},
	} {
		rows := row(0, 0, 0) + c.catalog + c.pack + row(1, len(table), 0)
		data := fmt.Sprintf("%s3 0 obj\n<< /Type /XRef /Size 4 /W [1 2 1] /Root 1 0 R /Length %d >>\nstream\n%s\nendstream\nendobj\n", table, len(rows), rows)
		data += strings.Repeat(" ", 200-len(data)) + "2 0 obj\n<< /Type /ObjStm /N 1 /First 4 /Length 1 0 R >>\nstream\n1 0 << >>\nendstream\nendobj\n"
		data += fmt.Sprintf("startxref\n%d\n%%%%EOF\n", len(table))
		if _, err := Read(t.Context(), []byte(data), 1<<20); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// TestFormsThatMultiply draws a form that draws itself twice: 2 to the power of 16 drawings of a large stream.
func TestFormsThatMultiply(t *testing.T) {
	content := strings.Repeat("% a comment that makes the stream larger\n", 100) + "/X Do /X Do"
	data := makeObjects(
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
		"<< /Type /Page /Parent 2 0 R /Resources << /XObject << /X 4 0 R >> >> /Contents 4 0 R >>",
		fmt.Sprintf("<< /Type /XObject /Subtype /Form /Length %d >>\nstream\n%s\nendstream", len(content), content),
	)
	if _, err := Read(t.Context(), data, 1<<20); err == nil || !strings.Contains(err.Error(), errTooMuchWork.Error()) {
		t.Errorf("error %v", err)
	}
}

func TestLimitsAndContext(t *testing.T) {
	data := makePDF("BT /F1 12 Tf (" + strings.Repeat("much text ", 1000) + ") Tj ET")
	if _, err := Read(t.Context(), data, 5000); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, data, 1<<20); err != context.Canceled {
		t.Errorf("error %v", err)
	}
}

// TestFontsThatHideTheirCharacters has a font of glyph numbers without a table of characters.
func TestFontsThatHideTheirCharacters(t *testing.T) {
	content := "BT /F1 12 Tf <00010002> Tj ET"
	data := makeObjects(
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
		"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 << /Type /Font /Subtype /Type0 /Encoding /Identity-H >> >> >> /Contents 4 0 R >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(content), content),
	)
	if _, err := Read(t.Context(), data, 1<<20); !errors.Is(err, ErrNoCharacters) {
		t.Errorf("error %v", err)
	}
}

func TestCharTable(t *testing.T) {
	table := parseCharTable([]byte(`/CIDInit /ProcSet findresource begin 12 dict begin begincmap
		1 begincodespacerange <00> <7f> endcodespacerange 1 begincodespacerange <8000> <ffff> endcodespacerange
		2 beginbfchar <01> <0041> <8001> <D83DDE00> endbfchar
		2 beginbfrange <10> <12> <0061> <20> <21> [<0066006C> <0031>] endbfrange
		1 begincidrange <8100> <8102> 7 endcidrange endcmap`))
	for code, want := range map[string]string{"\x01": "A", "\x80\x01": "😀", "\x10": "a", "\x12": "c", "\x13": "", "\x20": "fl", "\x21": "1", "\x22": ""} {
		if n := table.codeLength(code); n != len(code) || table.textOf(codeOf(code), n) != want {
			t.Errorf("%x: %d bytes, text %q, want %q", code, n, table.textOf(codeOf(code), n), want)
		}
	}
	if r, ok := table.findRange(0x8101, 2); !ok || r.glyph != 7 {
		t.Errorf("range %+v, %t", r, ok)
	}
	if n := table.codeLength("\x80"); n != 1 {
		t.Errorf("the first half of a code has %d bytes", n)
	}
}

// FuzzRead looks for files that stop the reader or come out as no text.
func FuzzRead(f *testing.F) {
	data, err := os.ReadFile("testdata/reportlab.pdf")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data, "")
	f.Add([]byte{}, "BT /F1 12 Tf 1 0 0 1 10 20 Tm [(one) -250 <4142>] TJ /X Do q 1 0 0 1 0 0 cm Q ET BI ID EI << /A [1 (b)] >> BDC")
	f.Fuzz(func(t *testing.T, data []byte, content string) {
		if len(data) > 1<<17 || len(content) > 1<<12 {
			return
		}
		if len(data) == 0 {
			data = makePDF(content)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if text, err := Read(ctx, data, 1<<20); err == nil && !utf8.ValidString(text) {
			t.Errorf("%q comes out as %q", data, text)
		}
	})
}

// makePDF returns a PDF of one page with this content. Its font F1 is Helvetica, and its form X draws itself.
func makePDF(content string) []byte { return makeObjects(pageObjects(content)...) }

func pageObjects(content string) []string {
	return []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Count 1 /Kids [4 0 R] /Resources << /Font << /F1 3 0 R >> /XObject << /X 6 0 R >> >> >>",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(content)+50, content+strings.Repeat(" ", 50)),
		"<< /Type /XObject /Subtype /Form /Length 5 >>\nstream\n/X Do\nendstream",
	}
}

// makeObjects returns a PDF of these objects, whose first is the catalog.
func makeObjects(objects ...string) []byte {
	var b bytes.Buffer
	var offsets []int
	b.WriteString("%PDF-1.4\n")
	for i, object := range objects {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, offset := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, start)
	return b.Bytes()
}
