package draw

import (
	"fmt"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomedium"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/text/width"
)

// typeface is one of the two faces of the pictures.
type typeface struct {
	parse  func() (*sfnt.Font, error)
	weight string // of the SVG
}

// The faces. They are parsed once, when the first picture needs them.
var (
	regularFace = &typeface{sync.OnceValues(func() (*sfnt.Font, error) { return opentype.Parse(goregular.TTF) }), "400"}
	mediumFace  = &typeface{sync.OnceValues(func() (*sfnt.Font, error) { return opentype.Parse(gomedium.TTF) }), "600"}
)

// textStyle is a face in a size.
type textStyle struct {
	face *typeface
	size int // pixels
	line int // height of a line
}

var (
	titleText = textStyle{mediumFace, 18, 24}
	nameText  = textStyle{mediumFace, 14, 18}
	smallText = textStyle{regularFace, 11, 15}
	labelText = textStyle{regularFace, 12, 15}
)

// textMeasurer measures text. It is not safe for concurrent use.
type textMeasurer struct {
	buf   sfnt.Buffer
	fonts map[*typeface]*sfnt.Font
}

func newTextMeasurer() (*textMeasurer, error) {
	r := &textMeasurer{fonts: make(map[*typeface]*sfnt.Font)}
	for _, f := range []*typeface{regularFace, mediumFace} {
		parsed, err := f.parse()
		if err != nil {
			return nil, fmt.Errorf("draw: parse the built-in font: %w", err)
		}
		r.fonts[f] = parsed
	}
	return r, nil
}

// glyphIndex returns the index of r's glyph in the face, 0 if it has none.
func (m *textMeasurer) glyphIndex(f *typeface, r rune) sfnt.GlyphIndex {
	i, err := m.fonts[f].GlyphIndex(&m.buf, r)
	if err != nil {
		return 0
	}
	return i
}

// textWidth returns the width of a line in whole pixels, rounded up. Characters that the face lacks, which a viewer of an
// SVG takes from another font, are estimated.
func (m *textMeasurer) textWidth(s textStyle, text string) int {
	var sum fixed.Int26_6
	for _, r := range text {
		sum += m.glyphAdvance(s, r)
	}
	return sum.Ceil()
}

func (m *textMeasurer) glyphAdvance(s textStyle, r rune) fixed.Int26_6 {
	if isIgnorable(r) {
		return 0
	}
	if i := m.glyphIndex(s.face, r); i != 0 {
		a, err := m.fonts[s.face].GlyphAdvance(&m.buf, i, fixed.I(s.size), font.HintingNone)
		if err == nil {
			return a
		}
	}
	if unicode.Is(unicode.Mn, r) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return fixed.I(s.size)
	}
	return fixed.I(s.size) * 7 / 10
}

// isIgnorable reports whether r is never visible by itself: joiners, direction marks and variation selectors.
func isIgnorable(r rune) bool {
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r)
}

// wrapText breaks text into lines of at most the given width, between words if possible, otherwise within them. Text that
// does not fit into the number of lines is cut off with an ellipsis.
func (m *textMeasurer) wrapText(s textStyle, text string, widest, most int) []string {
	var lines []string
	for _, paragraph := range strings.Split(text, "\n") {
		if len(lines) > most {
			break
		}
		line := ""
		for _, part := range splitBreakable(paragraph) {
			if len(lines) > most {
				break
			}
			if line != "" && m.textWidth(s, strings.TrimRight(line+part, " ")) > widest {
				lines = append(lines, strings.TrimRight(line, " "))
				line = ""
			}
			for m.textWidth(s, part) > widest && len(lines) <= most {
				head := m.longestFittingPrefix(s, part, widest)
				lines = append(lines, head)
				part = part[len(head):]
			}
			line += part
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	if len(lines) > most {
		const dots = "…"
		room := widest - m.textWidth(s, dots)
		last := m.longestFittingPrefix(s, lines[most-1], room)
		lines = append(lines[:most-1], strings.TrimRight(last, " ")+dots)
	}
	return lines
}

// splitBreakable splits a line into the parts between which it may be broken: after spaces and after the signs that join
// words in names.
func splitBreakable(s string) []string {
	var parts []string
	start := 0
	for i, r := range s {
		if end := i + 1; strings.ContainsRune(" _-/.:", r) && end < len(s) {
			parts = append(parts, s[start:end])
			start = end
		}
	}
	return append(parts, s[start:])
}

// longestFittingPrefix returns the longest beginning of s that is not wider than the room, but at least one character with what
// combines with it.
func (m *textMeasurer) longestFittingPrefix(s textStyle, text string, room int) string {
	var sum fixed.Int26_6
	for i, r := range text {
		sum += m.glyphAdvance(s, r)
		if i > 0 && sum.Ceil() > room && !unicode.Is(unicode.Mn, r) && !isIgnorable(r) {
			return text[:i]
		}
	}
	return text
}
