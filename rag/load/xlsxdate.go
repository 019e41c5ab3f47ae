package load

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// A dateFormat says how a program shows the numbers of a cell.
type dateFormat struct{ date, clock bool }

// maxStyles is the most styles of cells that are read.
const maxStyles = 1 << 16

// cellFormats reads which styles of cells show dates and times, by the number of the style.
func (a *archive) cellFormats() (styles []dateFormat, err error) {
	const name = "xl/styles.xml"
	if !a.hasFile(name) {
		return nil, nil
	}
	custom := map[string]dateFormat{}
	inStyles := false
	err = a.visitXML(name, visitor{
		start: func(name string, attribute func(string) string) {
			switch {
			case name == "numFmt" && len(custom) < maxStyles:
				custom[attribute("numFmtId")] = parseFormat(attribute("formatCode"))
			case name == "cellXfs":
				inStyles = true
			case name == "xf" && inStyles && len(styles) < maxStyles:
				id := attribute("numFmtId")
				format, own := custom[id]
				if !own {
					format = standardFormat(id)
				}
				styles = append(styles, format)
			}
		},
		end:  func(name string) { inStyles = inStyles && name != "cellXfs" },
		text: func([]byte) {},
		size: func() int { return 0 },
	})
	return styles, err
}

// standardFormat returns the format with a fixed number, which every program knows.
func standardFormat(id string) dateFormat {
	n, err := strconv.Atoi(id)
	switch {
	case err != nil:
		return dateFormat{}
	case n == 22:
		return dateFormat{date: true, clock: true}
	case n >= 14 && n <= 17, n >= 27 && n <= 31, n == 36, n >= 50 && n <= 54, n == 57, n == 58:
		return dateFormat{date: true}
	case n >= 18 && n <= 21, n >= 32 && n <= 35, n >= 45 && n <= 47, n == 55, n == 56:
		return dateFormat{clock: true}
	}
	return dateFormat{}
}

// parseFormat reads a format such as yyyy-mm-dd hh:mm;@. Quoted text, escaped text and text in brackets does not count.
// An m alone is a month.
func parseFormat(code string) (f dateFormat) {
	code, _, _ = strings.Cut(code, ";")
	month := false
	for i := 0; i < len(code); i++ {
		switch code[i] {
		case '"', '[':
			end := strings.IndexByte(code[i+1:], map[byte]byte{'"': '"', '[': ']'}[code[i]])
			if end < 0 {
				return dateFormat{}
			}
			if inside := strings.ToLower(code[i+1 : i+1+end]); code[i] == '[' && strings.Trim(inside, "hms") == "" {
				return dateFormat{} // a duration
			}
			i += end + 1
		case '\\', '_', '*':
			i++
		case 'y', 'Y', 'd', 'D':
			f.date = true
		case 'h', 'H', 's', 'S':
			f.clock = true
		case 'm', 'M':
			month = true
		case '0', '#', '?', 'E', 'e', '@', 'G', 'g':
			if !f.clock { // fractions of seconds are digits, too
				return dateFormat{}
			}
		}
	}
	f.date = f.date || month && !f.clock
	return f
}

// lastDay is the last day of the format: 9999-12-31.
const lastDay = 2958465

// text returns a number of days as a date, as a time or as both. A text that is not a valid number of days stays as it
// is.
func (f dateFormat) text(value string, from1904 bool) string {
	days, err := strconv.ParseFloat(value, 64)
	if err != nil || !f.date && !f.clock || !(days >= 0 && days <= lastDay) {
		return value
	}
	first := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	switch {
	case from1904:
		first = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	case days < 60: // the format has a 29 February 1900
		first = first.AddDate(0, 0, 1)
	}
	whole, part := math.Modf(days)
	at := first.AddDate(0, 0, int(whole)).Add(time.Duration(math.Round(part*24*60*60)) * time.Second)
	switch {
	case f.date && (f.clock || part != 0):
		return at.Format("2006-01-02 15:04:05")
	case f.date:
		return at.Format(time.DateOnly)
	}
	return at.Format(time.TimeOnly)
}
