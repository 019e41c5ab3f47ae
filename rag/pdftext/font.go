package pdftext

import (
	"strconv"
	"strings"

	"github.com/ledongthuc/pdf"
	"golang.org/x/text/encoding/charmap"
)

// A glyph is the character that a font draws for a code.
type glyph struct {
	text  string  // empty: unknown
	width float64 // as a part of the font's size
}

// A font turns the strings of a page into glyphs.
type font struct {
	composite bool
	// of a composite font: its codes and the numbers of their glyphs; nil: each code is two bytes and the number itself
	codes   *charTable
	unicode *charTable // nil: the file has none
	base    *charmap.Charmap
	names   [256]string      // of glyphs that differ from base
	library pdf.TextEncoding // maps the names of glyphs to characters; nil if there are none
	widths  map[uint32]float64
	missing float64 // the width of other glyphs
	scale   float64 // of widths
	glyphs  map[uint64]glyph
}

// newFont reads the font dictionary v. read returns the bytes of a stream.
func newFont(v pdf.Value, read func(pdf.Value) ([]byte, error)) (*font, error) {
	f := &font{base: charmap.Windows1252, widths: map[uint32]float64{}, scale: 0.001, glyphs: map[uint64]glyph{}}
	if table := v.Key("ToUnicode"); table.Kind() == pdf.Stream {
		data, err := read(table)
		if err != nil {
			return nil, err
		}
		f.unicode = parseCharTable(data)
	}
	encoding := v.Key("Encoding")
	if v.Key("Subtype").Name() == "Type0" {
		f.composite = true
		if encoding.Kind() == pdf.Stream {
			data, err := read(encoding)
			if err != nil {
				return nil, err
			}
			f.codes = parseCharTable(data)
		}
		f.readGlyphWidths(v.Key("DescendantFonts").Index(0))
		return f, nil
	}
	if encoding.Name() == "MacRomanEncoding" || encoding.Key("BaseEncoding").Name() == "MacRomanEncoding" {
		f.base = charmap.Macintosh
	}
	if differences := encoding.Key("Differences"); differences.Len() > 0 {
		f.readNames(differences)
		f.library = (&pdf.Font{V: v}).Encoder()
	}
	f.readCodeWidths(v)
	return f, nil
}

func (f *font) readNames(differences pdf.Value) {
	code := 0
	for i := range differences.Len() {
		switch v := differences.Index(i); v.Kind() {
		case pdf.Integer:
			code = int(v.Int64())
		case pdf.Name:
			if code >= 0 && code < len(f.names) {
				f.names[code] = v.Name()
			}
			code++
		}
	}
}

// readCodeWidths reads the widths of a simple font.
func (f *font) readCodeWidths(v pdf.Value) {
	if matrix := v.Key("FontMatrix"); v.Key("Subtype").Name() == "Type3" && matrix.Len() == 6 {
		f.scale = matrix.Index(0).Float64()
	}
	widths := v.Key("Widths")
	first := v.Key("FirstChar").Int64()
	for i := range min(widths.Len(), 256) {
		if code := first + int64(i); code >= 0 && code < 256 {
			f.widths[uint32(code)] = widths.Index(i).Float64()
		}
	}
	f.missing = v.Key("FontDescriptor").Key("MissingWidth").Float64()
	if widths.Len() == 0 {
		f.missing = 500
		for i, width := range standardWidths(v.Key("BaseFont").Name()) {
			f.widths[uint32(' '+i)] = width
		}
	}
}

// maxGlyphs is the most widths that are read of one font.
const maxGlyphs = 1 << 17

// readGlyphWidths reads the widths of a composite font: "first [w w …]" and "first last w".
func (f *font) readGlyphWidths(v pdf.Value) {
	f.missing = 1000
	if width := v.Key("DW"); width.Kind() != pdf.Null {
		f.missing = width.Float64()
	}
	list := v.Key("W")
	for i := 0; i+1 < list.Len() && len(f.widths) < maxGlyphs; {
		first := list.Index(i).Int64()
		second := list.Index(i + 1)
		if second.Kind() == pdf.Array {
			for n := range min(second.Len(), maxGlyphs) {
				f.widths[uint32(first)+uint32(n)] = second.Index(n).Float64()
			}
			i += 2
			continue
		}
		width := list.Index(i + 2).Float64()
		for n := first; n <= second.Int64() && len(f.widths) < maxGlyphs; n++ {
			f.widths[uint32(n)] = width
		}
		i += 3
	}
}

// nextCode returns the first code of s, which is not empty, and its length in bytes.
func (f *font) nextCode(s string) (code uint32, length int) {
	length = 1
	switch {
	case f.codes != nil:
		length = f.codes.codeLength(s)
	case f.composite:
		length = min(2, len(s))
	}
	return codeOf(s[:length]), length
}

// lookupGlyph returns the glyph of a code.
func (f *font) lookupGlyph(code uint32, length int) glyph {
	key := uint64(length)<<32 | uint64(code)
	g, ok := f.glyphs[key]
	if !ok {
		g = glyph{text: cleanText(f.glyphText(code, length)), width: f.glyphWidth(code, length) * f.scale}
		f.glyphs[key] = g
	}
	return g
}

func (f *font) glyphWidth(code uint32, length int) float64 {
	if f.codes != nil {
		if r, ok := f.codes.findRange(code, length); ok {
			code = r.glyph + code - r.low
		}
	}
	if width, ok := f.widths[code]; ok {
		return width
	}
	return f.missing
}

func (f *font) glyphText(code uint32, length int) string {
	if f.unicode != nil {
		if text := f.unicode.textOf(code, length); text != "" {
			return text
		}
	}
	if f.composite {
		return ""
	}
	b := byte(code)
	if name := f.names[b]; name != "" {
		if text := f.library.Decode(string([]byte{b})); text != string(rune(b)) || b >= 0xa0 {
			return text
		}
		if text := nameText(name); text != "" {
			return text
		}
	}
	return string(f.base.DecodeByte(b))
}

// nameText returns the text of names such as uni0041, u1F600 and f_i.
func nameText(name string) string {
	if name, _, _ = strings.Cut(name, "."); strings.Contains(name, "_") {
		return strings.ReplaceAll(name, "_", "")
	}
	for _, prefix := range []string{"uni", "u"} {
		digits, ok := strings.CutPrefix(name, prefix)
		if code, err := strconv.ParseUint(digits, 16, 32); ok && err == nil && len(digits) >= 4 {
			return string(rune(code))
		}
	}
	return ""
}

var ligatures = strings.NewReplacer("\ufb00", "ff", "\ufb01", "fi", "\ufb02", "fl", "\ufb03", "ffi", "\ufb04", "ffl", "\ufb05", "st", "\ufb06", "st",
	"\u00a0", " ")

// cleanText writes ligatures as letters, and removes characters that are not text.
func cleanText(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0xfffd {
			return -1
		}
		return r
	}, text)
	return ligatures.Replace(text)
}
