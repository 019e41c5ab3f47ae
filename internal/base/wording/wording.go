// Package wording has the few helpers for texts that many packages need: the nearest known word, a text cut to a
// length, and the inside of a fenced block.
package wording

import (
	"fmt"
	"strings"
)

// The limits of FindNearest: with more known words, or with a longer wrong one, it looks for none.
const (
	maxKnown  = 500
	maxLength = 64
)

// FindNearest returns the known word that a mistyped one most likely means, and "" when none is close. A letter that is
// inserted, deleted or replaced, or two neighbours that are swapped, count as one mistake; one mistake is accepted for
// about three letters, and at most three in all. Upper and lower case are the same. Among equally close words the first
// wins. Where no word is close, one that begins with wrong is returned.
func FindNearest(wrong string, known []string) string {
	if wrong == "" || len(wrong) > maxLength || len(known) > maxKnown {
		return ""
	}
	folded := []rune(strings.ToLower(wrong))
	best := ""
	limit := 1 + min((len(folded)+1)/3, 3)
	for _, word := range known {
		if d := countMistakes(folded, []rune(strings.ToLower(word)), limit); d < limit {
			best = word
			limit = d
		}
	}
	if best != "" || len(folded) < 3 {
		return best
	}
	for _, word := range known {
		if strings.HasPrefix(strings.ToLower(word), string(folded)) {
			return word
		}
	}
	return ""
}

// SuggestNearest returns the question whether the nearest known word is meant, with the word between quotes, and ""
// when none is close.
func SuggestNearest(wrong string, known []string, quote string) string {
	if near := FindNearest(wrong, known); near != "" {
		return fmt.Sprintf("did you mean %s%s%s?", quote, near, quote)
	}
	return ""
}

// countMistakes returns the number of letters to insert, delete, replace or swap with their neighbour to turn a into b.
// limit or more is limit.
func countMistakes(a, b []rune, limit int) int {
	if max(len(a)-len(b), len(b)-len(a)) >= limit {
		return limit
	}
	before := make([]int, len(b)+1)
	last := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit)
}

// CutText returns the first limit characters of a text, followed by mark if anything was cut off.
func CutText(s string, limit int, mark string) string {
	count := 0
	for i := range s {
		if count++; count > limit {
			return s[:i] + mark
		}
	}
	return s
}

// StripFence returns the inside of a text that is fenced as code, without the fence's language. Any other text is
// returned without the spaces around it.
func StripFence(s string) string {
	s = strings.TrimSpace(s)
	body, ok := strings.CutPrefix(s, "```")
	if !ok || !strings.HasSuffix(body, "```") {
		return s
	}
	_, body, ok = strings.Cut(strings.TrimSuffix(body, "```"), "\n")
	if !ok {
		return s
	}
	return body
}
