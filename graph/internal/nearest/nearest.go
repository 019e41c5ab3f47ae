// Package nearest finds the name that a misspelt one probably means.
package nearest

import "fmt"

// SuggestName returns a hint with the nearest of the known names, which are sorted, or "" if none is near.
func SuggestName(name string, known []string) string {
	best := FindName(name, known)
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// FindName returns the nearest of the known names, or "" if none is near.
func FindName(name string, known []string) string {
	best := ""
	at := 3
	for _, k := range known {
		if d := editDistance(name, k); d < at && d < len(name) {
			best = k
			at = d
		}
	}
	return best
}

// editDistance returns the Levenshtein distance of two names.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			sub := diag
			if a[i] != b[j] {
				sub++
			}
			diag = row[j+1]
			row[j+1] = min(sub, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
