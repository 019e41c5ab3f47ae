package pdftext

import (
	"cmp"
	"slices"
	"unicode/utf16"
)

// A charTable says which codes a font's strings consist of, and maps each code to text or to the number of a glyph.
type charTable struct {
	spaces [5][]codeRange // of valid codes, by their length in bytes
	ranges []charRange    // sorted by length and first code
}

type codeRange struct{ low, high uint32 }

// A charRange maps the codes from low to high.
type charRange struct {
	length    int
	low, high uint32
	text      string    // text of low, in UTF-16; the texts of the next codes count up from it
	list      []operand // instead of text: a string for each code
	glyph     uint32    // of low
}

// parseCharTable reads a CMap: the values of bfchar and bfrange are texts, those of cidchar and cidrange are numbers.
func parseCharTable(data []byte) *charTable {
	t := &charTable{}
	_ = readOperators(data, func(operator string, args []operand) error {
		switch operator {
		case "endcodespacerange":
			for ; len(args) >= 2; args = args[2:] {
				if n := len(args[0].text); n >= 1 && n <= 4 {
					t.spaces[n] = append(t.spaces[n], codeRange{codeOf(args[0].text), codeOf(args[1].text)})
				}
			}
		case "endbfchar", "endcidchar":
			for ; len(args) >= 2; args = args[2:] {
				t.addRange(args[0], args[0], args[1])
			}
		case "endbfrange", "endcidrange":
			for ; len(args) >= 3; args = args[3:] {
				t.addRange(args[0], args[1], args[2])
			}
		}
		return nil
	})
	slices.SortStableFunc(t.ranges, func(a, b charRange) int {
		return cmp.Or(cmp.Compare(a.length, b.length), cmp.Compare(a.low, b.low))
	})
	return t
}

func (t *charTable) addRange(low, high, value operand) {
	if n := len(low.text); n < 1 || n > 4 {
		return
	}
	t.ranges = append(t.ranges, charRange{length: len(low.text), low: codeOf(low.text), high: codeOf(high.text),
		text: value.text, list: value.list, glyph: uint32(max(value.number, 0))})
}

// codeOf returns the code that consists of the bytes.
func codeOf(s string) uint32 {
	var code uint32
	for i := range len(s) {
		code = code<<8 | uint32(s[i])
	}
	return code
}

// codeLength returns the length of the first code of s, which is not empty. A table without code spaces has codes of
// two bytes.
func (t *charTable) codeLength(s string) int {
	known := false
	for n := 1; n <= 4; n++ {
		known = known || len(t.spaces[n]) > 0
		if n > len(s) {
			break
		}
		for _, r := range t.spaces[n] {
			if code := codeOf(s[:n]); code >= r.low && code <= r.high {
				return n
			}
		}
	}
	if known {
		return 1
	}
	return min(2, len(s))
}

// findRange returns the range of a code.
func (t *charTable) findRange(code uint32, length int) (charRange, bool) {
	i, found := slices.BinarySearchFunc(t.ranges, charRange{length: length, low: code}, func(a, b charRange) int {
		return cmp.Or(cmp.Compare(a.length, b.length), cmp.Compare(a.low, b.low))
	})
	if !found {
		i--
	}
	if i < 0 || t.ranges[i].length != length || code < t.ranges[i].low || code > t.ranges[i].high {
		return charRange{}, false
	}
	return t.ranges[i], true
}

// textOf returns the text of a code, or "" if the table has none.
func (t *charTable) textOf(code uint32, length int) string {
	r, ok := t.findRange(code, length)
	if !ok {
		return ""
	}
	offset := code - r.low
	if r.list != nil {
		if int(offset) < len(r.list) {
			return decodeUTF16(r.list[offset].text, 0)
		}
		return ""
	}
	return decodeUTF16(r.text, offset)
}

// decodeUTF16 decodes big-endian UTF-16 after adding add to the last unit.
func decodeUTF16(s string, add uint32) string {
	if len(s) == 1 {
		s = "\x00" + s
	}
	units := make([]uint16, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 {
		units = append(units, uint16(s[i])<<8|uint16(s[i+1]))
	}
	if len(units) > 0 {
		units[len(units)-1] += uint16(add)
	}
	return string(utf16.Decode(units))
}
