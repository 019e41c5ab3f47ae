package edit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A line of a hunk: ' ' stays, '-' is removed, '+' is added.
type line struct {
	op   byte
	text string
}

// A Hunk is one change of a file.
type Hunk struct {
	at      int      // the line of the patch, counted from 1
	number  int      // the line of the file where the patch says it is, counted from 1; 0: it does not say
	anchors []string // lines of the file above the change, from the outer to the inner
	lines   []line
	top     bool // lines that are added are the first ones of the file
	atEnd   bool // the change is at the end of the file
	// These say that a line has no line end because it is the last one of the file: the last one of the old lines, and
	// of the new ones.
	oldOpen, newOpen bool
	name             string // of the change, for messages; empty: "hunk N"
}

func (h *Hunk) old() (list []string) {
	for _, l := range h.lines {
		if l.op != '+' {
			list = append(list, l.text)
		}
	}
	return list
}

// changes reports whether the hunk would change anything.
func (h *Hunk) changes() bool {
	return h.oldOpen != h.newOpen || slices.ContainsFunc(h.lines, func(l line) bool { return l.op != ' ' })
}

// A place is where a hunk fits.
type place struct {
	from int
	by   tolerance
}

// A Result is a file after its changes.
type Result struct {
	Text  string
	Notes []string // what was not exactly as the patch says, each a sentence without its end
	where []region
}

// Apply makes all changes of a file, or none. The error says which one does not fit, and why.
func Apply(file string, hunks []*Hunk) (Result, error) {
	t := splitText(file)
	places, err := findPlaces(t, hunks)
	if err != nil {
		return Result{}, err
	}
	order := make([]int, len(hunks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return places[a].from - places[b].from })
	r := Result{}
	shift := 0
	for _, i := range order {
		h := hunks[i]
		at := places[i]
		old := h.old()
		if by := at.by.describe(); by != "" {
			r.Notes = append(r.Notes, fmt.Sprintf("%s was found with %s", h.describe(i), by))
		}
		if len(old) == 0 && h.number == 0 && !h.top && len(h.anchors) == 0 && len(t.lines) > 0 {
			r.Notes = append(r.Notes, h.describe(i)+" says no place and was added at the end")
		}
		from := at.from + shift
		lines, kept, err := h.newLines(t, from, at.by)
		if err != nil {
			return Result{}, fmt.Errorf("%s does not fit: %w", h.describe(i), err)
		}
		t.replaceLines(from, from+len(old), lines, kept)
		if end := from + len(lines); end == len(t.lines) && end > 0 && h.oldOpen != h.newOpen {
			t.ends[end-1] = ""
			if !h.newOpen {
				t.ends[end-1] = t.endNear(end - 1)
			}
		}
		r.where = append(r.where, region{from, from + len(lines)})
		shift += len(lines) - len(old)
	}
	r.Text = t.String()
	if r.Text == file {
		return Result{}, errors.New("the patch changes nothing: the file is already as it says")
	}
	r.Text = t.String()
	r.widenRegions(t)
	return r, nil
}

// describe returns the name of a hunk in messages.
func (h *Hunk) describe(i int) string {
	if h.name != "" {
		return h.name
	}
	return fmt.Sprintf("hunk %d (line %d of the patch)", i+1, h.at)
}

// newLines returns the lines that take the place of the old ones, and for each the line of the file whose line end it
// gets, -1 for none. Lines that stay are those of the file; new lines get its indentation if that differs from the
// patch's.
func (h *Hunk) newLines(t *text, from int, by tolerance) (lines []string, kept []int, err error) {
	indents := map[string]string{}
	if by == allBlanks || by == anyOfThem {
		at := from
		for _, l := range h.lines {
			if l.op == '+' {
				continue
			}
			if strings.TrimSpace(l.text) != "" {
				patch := indentOf(l.text)
				file := indentOf(t.lines[at])
				if known, has := indents[patch]; has && known != file {
					return nil, nil, fmt.Errorf("its lines are indented in a way that cannot be translated: line %d of the file is %q, the patch has %q", at+1, t.lines[at], l.text)
				}
				indents[patch] = file
			}
			at++
		}
	}
	at := from
	var removed, added []int // of one change: lines of the file, and places in lines
	for _, l := range h.lines {
		switch l.op {
		case ' ':
			pairEnds(kept, removed, added)
			removed = nil
			added = nil
			lines = append(lines, t.lines[at])
			kept = append(kept, at)
			at++
		case '-':
			removed = append(removed, at)
			at++
		case '+':
			added = append(added, len(lines))
			lines = append(lines, translateIndent(l.text, indents))
			kept = append(kept, -1)
		}
	}
	pairEnds(kept, removed, added)
	return lines, kept, nil
}

// pairEnds gives each new line of a change the line end of the line that it replaces: in a file of mixed line ends only
// what changes is changed.
func pairEnds(kept, removed, added []int) {
	for i, place := range added {
		if i < len(removed) {
			kept[place] = removed[i]
		}
	}
}

func indentOf(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// translateIndent returns a line with the indentation of the file instead of that of the patch, by the pairs that are
// known. Of a deeper indentation the beginning is translated.
func translateIndent(line string, known map[string]string) string {
	indent := indentOf(line)
	best := ""
	found := false
	for patch := range known {
		if strings.HasPrefix(indent, patch) && (!found || len(patch) > len(best)) {
			best = patch
			found = true
		}
	}
	if !found || indent == line {
		return line
	}
	rest := indent[len(best):]
	if unit, wide := indentUnit(known); unit != "" && wide > 0 && strings.Trim(rest, " ") == "" && len(rest)%wide == 0 {
		rest = strings.Repeat(unit, len(rest)/wide)
	}
	return known[best] + rest + line[len(indent):]
}

// indentUnit returns a tab and the number of blanks that the patch writes for it, if the file indents by tabs and the
// patch by blanks.
func indentUnit(known map[string]string) (unit string, wide int) {
	for patch, file := range known {
		if file == "" || strings.Trim(file, "\t") != "" || strings.Trim(patch, " ") != "" || len(patch)%len(file) != 0 {
			continue
		}
		return "\t", len(patch) / len(file)
	}
	return "", 0
}

// findPlaces returns where each hunk fits. A hunk with only one place has that one. One with several is decided by its
// anchors, its number, or the order of the hunks; otherwise it is an error with the places.
func findPlaces(t *text, hunks []*Hunk) ([]place, error) {
	places := make([]place, len(hunks))
	taken := []region{}
	free := func(from, size int) bool {
		return !slices.ContainsFunc(taken, func(r region) bool {
			return from < r.to && r.from < from+size || size > 0 && from == r.from && r.from == r.to
		})
	}
	end := 0 // of the hunk before
	for i, h := range hunks {
		found, by, err := h.candidates(t, end)
		if err != nil {
			return nil, fmt.Errorf("%s does not fit: %w", h.describe(i), err)
		}
		size := len(h.old())
		found = slices.DeleteFunc(found, func(at int) bool { return !free(at, size) })
		at, err := h.choose(i, found, end, hunks)
		if err != nil {
			return nil, err
		}
		if at < 0 {
			return nil, fmt.Errorf("%s does not fit: %w", h.describe(i), h.mismatch(t, taken))
		}
		places[i] = place{at, by}
		taken = append(taken, region{at, at + size})
		end = at + size
	}
	return places, nil
}

// candidates returns the places where the lines of a hunk stand, with the least tolerance that finds one, below its
// anchors if it has some.
func (h *Hunk) candidates(t *text, after int) (found []int, by tolerance, err error) {
	from, anchored, err := h.findAnchors(t, after)
	if err != nil {
		return nil, exact, err
	}
	old := h.old()
	if len(old) == 0 {
		switch {
		case anchored:
			for _, at := range from {
				found = append(found, at+1)
			}
			return found, exact, nil
		case h.top:
			return []int{0}, exact, nil
		case h.number > 0:
			return []int{min(h.number, len(t.lines))}, exact, nil
		}
		return []int{len(t.lines)}, exact, nil
	}
	for _, by := range tolerances {
		found = findLines(t.lines, old, 0, by)
		if h.atEnd || h.oldOpen {
			found = slices.DeleteFunc(found, func(at int) bool { return at+len(old) != len(t.lines) })
		}
		if anchored {
			found = firstBelow(found, from)
		}
		if len(found) > 0 {
			return found, by, nil
		}
	}
	return nil, exact, nil
}

// firstBelow returns the first place at or below each anchor.
func firstBelow(found, anchors []int) (list []int) {
	for _, a := range anchors {
		i := slices.IndexFunc(found, func(at int) bool { return at >= a })
		if i >= 0 && !slices.Contains(list, found[i]) {
			list = append(list, found[i])
		}
	}
	return list
}

// findAnchors returns the lines at which the innermost anchor stands, below the outer ones. anchored is false if the
// hunk has none.
func (h *Hunk) findAnchors(t *text, after int) (at []int, anchored bool, err error) {
	if len(h.anchors) == 0 {
		return nil, false, nil
	}
	at = []int{-1}
	for _, anchor := range h.anchors {
		var next []int
		for _, above := range at {
			for _, found := range findAnchor(t.lines, anchor, above+1) {
				if !slices.Contains(next, found) {
					next = append(next, found)
				}
			}
			if len(h.anchors) > 1 && len(next) > 0 {
				next = next[:1] // the inner one that follows the outer one
			}
		}
		if len(next) == 0 {
			return nil, true, fmt.Errorf("its heading %q is not a line of the file%s", anchor, nearestLine(t.lines, anchor))
		}
		at = next
	}
	if len(at) > 1 {
		if below := slices.DeleteFunc(slices.Clone(at), func(a int) bool { return a < after }); after > 0 && len(below) == 1 {
			at = below
		}
	}
	return at, true, nil
}

// findAnchor returns the lines from a line on that are an anchor, or else those that begin with it: blanks around it do
// not count.
func findAnchor(lines []string, anchor string, from int) (at []int) {
	want := anyOfThem.reduce(anchor)
	equal := func(l string) bool { return l == want }
	begins := func(l string) bool { return strings.HasPrefix(l, want) }
	for _, fits := range []func(string) bool{equal, begins} {
		for i := from; i < len(lines); i++ {
			if fits(anyOfThem.reduce(lines[i])) {
				at = append(at, i)
			}
		}
		if len(at) > 0 || want == "" {
			return at
		}
	}
	return nil
}

// choose returns one of the places of a hunk, -1 if there is none.
func (h *Hunk) choose(i int, found []int, end int, all []*Hunk) (int, error) {
	switch {
	case len(found) == 0:
		return -1, nil
	case len(found) == 1:
		return found[0], nil
	}
	if h.number > 0 {
		at, second := nearest(found, h.number-1)
		if !second {
			return at, nil
		}
	}
	below := slices.DeleteFunc(slices.Clone(found), func(at int) bool { return at < end })
	if end > 0 && len(below) == 1 && len(h.anchors) == 0 {
		return below[0], nil
	}
	if same := h.countSame(i, all); same == len(found) && len(h.anchors) == 0 {
		return found[0], nil
	}
	var where []string
	for _, at := range found {
		where = append(where, strconv.Itoa(at+1))
	}
	return 0, fmt.Errorf("%s fits in %d places, at the lines %s: add lines around it, or a heading (@@ with a line above), so that it fits in only one", h.describe(i), len(found), strings.Join(where, ", "))
}

// countSame returns how many hunks from this one on change the same lines: if there are as many places, each has its
// own.
func (h *Hunk) countSame(i int, all []*Hunk) (n int) {
	for _, o := range all[i:] {
		if len(o.anchors) == 0 && slices.Equal(o.old(), h.old()) {
			n++
		}
	}
	return n
}

// nearest returns the place that is nearest to a line. tie is true if two are.
func nearest(found []int, line int) (at int, tie bool) {
	distance := func(a int) int { return max(a-line, line-a) }
	at = found[0]
	for _, f := range found[1:] {
		switch {
		case distance(f) < distance(at):
			at = f
			tie = false
		case distance(f) == distance(at):
			tie = true
		}
	}
	return at, tie
}

// mismatch says why a hunk does not fit: where most of its lines stand, and what differs there.
func (h *Hunk) mismatch(t *text, taken []region) error {
	old := h.old()
	if (h.atEnd || h.oldOpen) && len(findLines(t.lines, old, 0, anyOfThem)) > 0 {
		return errors.New("its lines are in the file, but not at its end")
	}
	if len(findLines(t.lines, old, 0, anyOfThem)) > 0 {
		if len(h.anchors) > 0 {
			return fmt.Errorf("its lines are in the file, but not below its heading %q", h.anchors[len(h.anchors)-1])
		}
		return errors.New("its lines are changed by another hunk of the patch")
	}
	best := -1
	most := 0
	for at := range t.lines {
		n := 0
		for n < len(old) && at+n < len(t.lines) && anyOfThem.reduce(t.lines[at+n]) == anyOfThem.reduce(old[n]) {
			n++
		}
		if n > most {
			best = at
			most = n
		}
	}
	if best < 0 {
		return fmt.Errorf("its first line is not in the file: %q%s", old[0], nearestLine(t.lines, old[0]))
	}
	has := "the end of the file"
	if best+most < len(t.lines) {
		has = strconv.Quote(t.lines[best+most])
	}
	return fmt.Errorf("it agrees with the file from line %d on, but line %d is %s where the patch has %q", best+1, best+most+1, has, old[most])
}

// nearestLine returns which line of a file is like another one, as the end of a sentence; "" if none is.
func nearestLine(lines []string, want string) string {
	words := strings.Fields(plainMarks.Replace(want))
	best := -1
	most := 0
	for i, l := range lines {
		n := 0
		for _, w := range words {
			if strings.Contains(l, w) {
				n += len(w)
			}
		}
		if n > most {
			best = i
			most = n
		}
	}
	if best < 0 || 2*most < len(strings.Join(words, "")) {
		return ""
	}
	return fmt.Sprintf("; line %d is %q", best+1, lines[best])
}
