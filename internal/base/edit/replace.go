package edit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Replace puts a text in the place of another one, which may be a part of a line or several lines. If all is true, it
// does so everywhere; otherwise the text must be in the file only once. Line ends of the file stay as they are. A text
// of whole lines is also found with other blanks and other quotes; the result says so.
func Replace(file, old, now string, all bool) (Result, error) {
	old = strings.ReplaceAll(old, "\r\n", "\n")
	now = strings.ReplaceAll(now, "\r\n", "\n")
	switch {
	case old == now:
		return Result{}, errors.New("the old and the new text are the same")
	case old == "" && file == "":
		return Result{Text: now}, nil
	case old == "":
		return Result{}, errors.New("the old text is empty, and the file is not: give the text that is to be replaced")
	}
	t := splitText(file)
	plain := strings.Join(t.lines, "\n")
	if n := len(t.ends); n > 0 && t.ends[n-1] != "" {
		plain += "\n"
	}
	places := findAll(plain, old)
	switch {
	case len(places) == 0:
		return replaceSimilar(file, old, now, all)
	case len(places) > 1 && !all:
		return Result{}, fmt.Errorf("the old text is in %d places, at the lines %s: add text around it so that it is in only one, or replace all", len(places), listLines(plain, places))
	}
	r := Result{}
	for i := len(places) - 1; i >= 0; i-- {
		t.replaceText(places[i], len(old), now, plain)
		plain = plain[:places[i]] + now + plain[places[i]+len(old):]
	}
	shift := 0
	for _, at := range places {
		from := strings.Count(plain[:at+shift], "\n")
		r.where = append(r.where, region{from, from + strings.Count(strings.TrimSuffix(now, "\n"), "\n") + 1})
		shift += len(now) - len(old)
	}
	r.Text = t.String()
	r.widenRegions(t)
	return r, nil
}

func findAll(s, part string) (at []int) {
	for from := 0; ; {
		i := strings.Index(s[from:], part)
		if i < 0 {
			return at
		}
		at = append(at, from+i)
		from += i + len(part)
	}
}

func listLines(plain string, places []int) string {
	var list []string
	for _, at := range places {
		list = append(list, strconv.Itoa(strings.Count(plain[:at], "\n")+1))
	}
	return strings.Join(list, ", ")
}

// replaceText replaces bytes of the file as it is with "\n" as its line ends.
func (t *text) replaceText(at, size int, now, plain string) {
	from := strings.Count(plain[:at], "\n")
	to := from + strings.Count(plain[at:at+size], "\n") // the line in which the text ends
	head := plain[strings.LastIndexByte(plain[:at], '\n')+1 : at]
	rest := plain[at+size:]
	tail, _, _ := strings.Cut(rest, "\n")
	lines := strings.Split(head+now+tail, "\n")
	last := "" // the end of the last line
	beyond := to >= len(t.lines)
	if !beyond {
		last = t.ends[to]
	}
	ends := make([]string, len(lines))
	for i := range ends {
		ends[i] = t.endNear(from)
		if from+i < to && from+i < len(t.ends) && t.ends[from+i] != "" {
			ends[i] = t.ends[from+i]
		}
	}
	ends[len(ends)-1] = last
	if beyond && lines[len(lines)-1] == "" { // the text ended with the last line end of the file
		lines = lines[:len(lines)-1]
		ends = ends[:len(ends)-1]
	}
	end := min(to+1, len(t.lines))
	t.lines = concat(t.lines[:from], lines, t.lines[end:])
	t.ends = concat(t.ends[:from], ends, t.ends[end:])
}

// replaceSimilar replaces whole lines that are not in the file exactly so.
func replaceSimilar(file, old, now string, all bool) (Result, error) {
	h := &Hunk{name: "the old text", lines: diffLines(strings.Split(strings.TrimSuffix(old, "\n"), "\n"), splitLines(now))}
	if all {
		return Result{}, fmt.Errorf("the old text is not in the file exactly so%s; to replace all, give it as it is in the file", nearestLine(splitText(file).lines, h.old()[0]))
	}
	r, err := Apply(file, []*Hunk{h})
	if err != nil {
		return Result{}, errors.New(strings.Replace(err.Error(), "the old text does not fit: its first line", "the old text is not in the file: its first line", 1))
	}
	return r, nil
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
