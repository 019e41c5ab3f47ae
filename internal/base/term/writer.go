package term

import (
	"os"
	"strings"

	xterm "golang.org/x/term"
)

// A Writer writes to a stream that may be a terminal. A terminal gets clean text (see [CleanText]) and the sequences of
// [PaintText] and [RewindRows]; anything else gets the bytes unchanged, with the styles of PaintText. It keeps no state
// between two writes: each is complete by itself. It is as safe for concurrent use as its file.
type Writer struct {
	file     *os.File
	terminal bool
}

// NewWriter returns a writer to a stream.
func NewWriter(f *os.File) *Writer { return &Writer{file: f, terminal: IsTerminal(f)} }

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(f *os.File) bool { return xterm.IsTerminal(int(f.Fd())) }

// IsTerminal reports whether the stream is a terminal.
func (w *Writer) IsTerminal() bool { return w.terminal }

// File returns the stream, for programs that take over the whole terminal, such as a form. The caller must clean what
// they show.
func (w *Writer) File() *os.File { return w.file }

// Size returns the number of columns and rows of the terminal: 80 and 24 if the size is unknown or zero.
func (w *Writer) Size() (cols, rows int) {
	if cols, rows, err := xterm.GetSize(int(w.file.Fd())); err == nil && cols > 0 && rows > 0 {
		return cols, rows
	}
	return 80, 24
}

// Columns returns the number of columns of the terminal; 0: it is none.
func (w *Writer) Columns() int {
	if !w.terminal {
		return 0
	}
	columns, _ := w.Size()
	return columns
}

// wrapText returns a text for people whose lines fit into the terminal. Anything other than a terminal gets it as it is.
func (w *Writer) wrapText(text string) string {
	return WrapText(text, w.Columns())
}

// Write writes p as one piece. It returns len(p) unless the stream fails.
func (w *Writer) Write(p []byte) (int, error) {
	var text string
	if w.terminal {
		text = renderMarks(string(p), CleanText, expandMark)
	} else {
		text = renderMarks(string(p), func(s string) string { return s }, expandStyle)
	}
	if text == "" {
		return len(p), nil
	}
	if _, err := w.file.WriteString(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Name returns a name for the stream: quoted if the stream is a terminal and the name is not one clean line.
func (w *Writer) Name(name string) string {
	if w.terminal {
		return QuoteName(name)
	}
	return name
}

// expandMark returns the control sequence of a mark.
func expandMark(sequence string) string {
	if strings.HasPrefix(sequence, "[") || strings.HasPrefix(sequence, "]") {
		return "\x1b" + sequence
	}
	return sequence
}

// expandStyle returns the control sequence of a mark if the mark is a style, otherwise "": only a terminal has a
// cursor.
func expandStyle(sequence string) string {
	if strings.HasSuffix(sequence, "m") {
		return expandMark(sequence)
	}
	return ""
}
