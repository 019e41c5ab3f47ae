package load

import (
	"bytes"
	"cmp"
	"net/mail"
	"strings"
	"time"
)

// dateForms are the forms of dates that metadata and front matter have.
var dateForms = []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime, "2006-01-02 15:04", time.DateOnly}

// ParseDate reads a date, with or without a time of day; without a zone it is of UTC.
func ParseDate(text string) (time.Time, bool) {
	text = strings.Trim(strings.TrimSpace(text), `"'`)
	for _, form := range dateForms {
		if t, err := time.Parse(form, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// findDate returns the date of a document: what its metadata, its front matter or the head of its message says, else
// when its file was changed; zero: not known.
func (f *File) findDate(doc *Document) time.Time {
	for _, name := range []string{"date", "updated", "modified"} {
		if t, ok := ParseDate(doc.Metadata[name]); ok {
			return t
		}
	}
	switch f.entry.ext {
	case "eml":
		if m, err := mail.ReadMessage(bytes.NewReader(f.data)); err == nil {
			if t, err := m.Header.Date(); err == nil {
				return t
			}
		}
	case "md", "mkd", "markdown":
		if t, ok := ParseDate(frontMatter(doc.Text, "date")); ok {
			return t
		}
	}
	return f.changed
}

// frontMatter returns a value of the lines between two lines --- at the start of a text; "" if there is none.
func frontMatter(text, name string) (value string) {
	const most = 100 // lines
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		switch {
		case n == 1 && line != "---", n > most:
			return ""
		case n > 1 && line == "---":
			return value
		}
		if key, rest, ok := strings.Cut(line, ":"); ok && key == name {
			value = cmp.Or(value, strings.TrimSpace(rest))
		}
	}
	return ""
}
