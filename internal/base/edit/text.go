package edit

import "strings"

// A text is a file in lines. It keeps the line end of each line, and the mark of the byte order at its beginning.
type text struct {
	mark  string   // "\ufeff" or ""
	lines []string // without line ends
	ends  []string // "\n", "\r\n" or "\r"; "" for a last line without one
}

const byteOrderMark = "\ufeff"

// splitText returns a file in lines.
func splitText(file string) *text {
	t := &text{}
	if rest, ok := strings.CutPrefix(file, byteOrderMark); ok {
		t.mark = byteOrderMark
		file = rest
	}
	for file != "" {
		i := strings.IndexAny(file, "\r\n")
		if i < 0 {
			t.lines = append(t.lines, file)
			t.ends = append(t.ends, "")
			break
		}
		end := file[i : i+1]
		if strings.HasPrefix(file[i:], "\r\n") {
			end = "\r\n"
		}
		t.lines = append(t.lines, file[:i])
		t.ends = append(t.ends, end)
		file = file[i+len(end):]
	}
	return t
}

// String returns the file.
func (t *text) String() string {
	var b strings.Builder
	b.WriteString(t.mark)
	for i, line := range t.lines {
		b.WriteString(line)
		b.WriteString(t.ends[i])
	}
	return b.String()
}

// endNear returns the line end for a new line before line i: that of its neighbours, "\n" in an empty file.
func (t *text) endNear(i int) string {
	for at := min(i, len(t.ends)) - 1; at >= 0; at-- {
		if t.ends[at] != "" {
			return t.ends[at]
		}
	}
	for at := i; at < len(t.ends); at++ {
		if t.ends[at] != "" {
			return t.ends[at]
		}
	}
	return "\n"
}

// A region is a range of lines of a changed file, counted from 0: from is the first one, to the one behind the last.
type region struct{ from, to int }

// replaceLines puts lines in the place of those from from to to. kept[i] is the line of the file whose line end
// lines[i] gets, -1 if that is the one of the line before.
func (t *text) replaceLines(from, to int, lines []string, kept []int) {
	near := t.endNear(from)
	ends := make([]string, len(lines))
	for i := range lines {
		ends[i] = near
		if i > 0 {
			ends[i] = ends[i-1]
		}
		if kept[i] >= 0 && t.ends[kept[i]] != "" {
			ends[i] = t.ends[kept[i]]
		}
	}
	atEnd := to == len(t.lines)
	open := atEnd && len(t.lines) > 0 && t.ends[len(t.ends)-1] == "" // the file has no last line end
	if open && len(lines) > 0 {
		ends[len(ends)-1] = ""
	}
	if open && len(lines) > 0 && from > 0 && t.ends[from-1] == "" { // something follows what was the last line
		t.ends[from-1] = near
	}
	t.lines = concat(t.lines[:from], lines, t.lines[to:])
	t.ends = concat(t.ends[:from], ends, t.ends[to:])
	if open && len(lines) == 0 && len(t.ends) > 0 && from == len(t.ends) {
		t.ends[len(t.ends)-1] = ""
	}
}

func concat(parts ...[]string) []string {
	var all []string
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}
