package edit

import "strings"

// A tolerance is how far a line of a file may differ from the line that was looked for. Each one also allows what those
// before it allow.
type tolerance int

const (
	exact tolerance = iota
	trailingBlanks
	allBlanks
	typography // quotes, dashes and blanks that look like those of a keyboard
	anyOfThem
)

// tolerances are all of them, in the order in which they are tried.
var tolerances = []tolerance{exact, trailingBlanks, allBlanks, typography, anyOfThem}

// describe returns the tolerance as the end of a sentence "found with …"; "" for an exact match.
func (t tolerance) describe() string {
	switch t {
	case trailingBlanks:
		return "other blanks at the ends of lines"
	case allBlanks:
		return "other blanks"
	case typography:
		return "other quotes or dashes"
	case anyOfThem:
		return "other blanks, quotes or dashes"
	}
	return ""
}

// plainMarks are typographic characters and what a keyboard has instead.
var plainMarks = strings.NewReplacer(
	"\u2018", "'", "\u2019", "'", "\u201a", "'", "\u201b", "'", "\u2032", "'",
	"\u201c", `"`, "\u201d", `"`, "\u201e", `"`, "\u201f", `"`, "\u2033", `"`,
	"\u2010", "-", "\u2011", "-", "\u2012", "-", "\u2013", "-", "\u2014", "-", "\u2212", "-",
	"\u2026", "...", "\u00a0", " ", "\u2009", " ", "\u202f", " ", "\u3000", " ",
)

// reduce returns what two lines must have in common to be the same.
func (t tolerance) reduce(line string) string {
	switch t {
	case trailingBlanks:
		return strings.TrimRight(line, " \t")
	case allBlanks:
		return strings.Join(strings.Fields(line), " ")
	case typography:
		return strings.TrimRight(plainMarks.Replace(line), " \t")
	case anyOfThem:
		return strings.Join(strings.Fields(plainMarks.Replace(line)), " ")
	}
	return line
}

// findLines returns the places where lines stand in a file, from a line on: their first lines.
func findLines(file, want []string, from int, t tolerance) (places []int) {
	reduced := make([]string, len(want))
	for i, w := range want {
		reduced[i] = t.reduce(w)
	}
	for at := from; at+len(want) <= len(file); at++ {
		fits := true
		for i := range want {
			if t.reduce(file[at+i]) != reduced[i] {
				fits = false
				break
			}
		}
		if fits {
			places = append(places, at)
		}
	}
	return places
}
