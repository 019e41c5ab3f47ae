package edit

import "strings"

// UndoReplace reports whether [Replace] with the same arguments has changed a file to this one: whether was says so of
// a file that it may have been. It does not find a removed text that began inside of a line.
func UndoReplace(file, old, now string, all bool, was func(before string) bool) bool {
	if now == "" {
		return insertLines(file, old, was)
	}
	r, err := Replace(file, now, old, all)
	return err == nil && was(r.Text)
}

// These bound the search for the place of a removed text.
const (
	largestUndo = 1 << 20 // bytes
	mostPlaces  = 500
)

// insertLines reports whether a file with a text at the beginning of one of its lines is the one that was.
func insertLines(file, text string, was func(before string) bool) bool {
	if len(file) > largestUndo {
		return false
	}
	at := 0
	for range mostPlaces {
		if was(file[:at] + text + file[at:]) {
			return true
		}
		next := strings.IndexByte(file[at:], '\n')
		if next < 0 {
			break
		}
		at += next + 1
	}
	return false
}

// UndoHunks reports whether [Apply] with the same hunks has changed a file to this one, as UndoReplace does.
func UndoHunks(file string, hunks []*Hunk, was func(before string) bool) bool {
	reversed := make([]*Hunk, len(hunks))
	for i, h := range hunks {
		back := *h
		back.oldOpen, back.newOpen = h.newOpen, h.oldOpen
		back.lines = nil
		for _, l := range h.lines {
			switch l.op {
			case '-':
				l.op = '+'
			case '+':
				l.op = '-'
			}
			back.lines = append(back.lines, l)
		}
		reversed[i] = &back
	}
	r, err := Apply(file, reversed)
	return err == nil && was(r.Text)
}
