package term

import (
	"crypto/rand"
	"fmt"
	"strings"
)

// A Style is the look of a text, as the numbers of an SGR sequence.
type Style string

// These are the styles that raddle uses.
const (
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Cyan   Style = "36"
)

// A mark encloses a control sequence of raddle itself on its way to a [Writer]: markBegin, the sequence without its
// ESC, markEnd. The random part differs in each process and never leaves it, so text from outside cannot contain a
// mark.
var (
	markBegin = "\x1b<" + rand.Text() + ":"
	markEnd   = byte('>')
)

func wrapMark(sequence string) string { return markBegin + sequence + string(markEnd) }

// PaintText returns text in a style, for a [Writer]. Text may hold other painted text. An empty text stays empty.
func PaintText(style Style, text string) string {
	if text == "" {
		return ""
	}
	return wrapMark("["+string(style)+"m") + text + wrapMark("[0m")
}

// LinkText returns text as a link to an address, for a [Writer] on a terminal that shows links (OSC 8). The address
// must be that of a parsed URL, so that it has no control characters.
func LinkText(address, text string) string {
	address = strings.NewReplacer("\x1b", "%1B", string(markEnd), "%3E", "\a", "%07", "\n", "%0A").Replace(address)
	return wrapMark("]8;;"+address+"\a") + text + wrapMark("]8;;\a")
}

// RewindRows returns a mark that erases the last rows of the screen, for a [Writer] on a terminal. The cursor must be
// in the last of these rows; afterwards it is at the start of the first one. On anything other than a terminal it has
// no effect.
func RewindRows(rows int) string {
	if rows > 1 {
		return wrapMark("\r") + wrapMark(fmt.Sprintf("[%dA", rows-1)) + wrapMark("[J")
	}
	return wrapMark("\r") + wrapMark("[J")
}

// placeCursor returns a mark that moves the cursor up and to a column of that line.
func placeCursor(up, column int) string {
	text := wrapMark("\r")
	if up > 0 {
		text += wrapMark(fmt.Sprintf("[%dA", up))
	}
	if column > 0 {
		text += wrapMark(fmt.Sprintf("[%dC", column))
	}
	return text
}

// StripMarks returns text without the marks of PaintText, LinkText and RewindRows, for text that no [Writer] writes.
func StripMarks(text string) string {
	return renderMarks(text, func(s string) string { return s }, func(string) string { return "" })
}

// renderMarks returns text with outside text cleaned and raddle's own marks replaced.
func renderMarks(text string, outside, own func(string) string) string {
	before, rest, found := strings.Cut(text, markBegin)
	if !found {
		return outside(text)
	}
	var b strings.Builder
	for {
		b.WriteString(outside(before))
		if !found {
			return b.String()
		}
		end := strings.IndexByte(rest, markEnd)
		if end < 0 { // the text was cut inside a mark
			return b.String()
		}
		b.WriteString(own(rest[:end]))
		before, rest, found = strings.Cut(rest[end+1:], markBegin)
	}
}
