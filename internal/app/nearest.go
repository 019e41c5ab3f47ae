package app

import "strings"

// Nearest returns the known word that a mistyped one most likely means, "" when
// none is close. Upper and lower case are the same.
func Nearest(wrong string, known []string) string {
	if wrong == "" {
		return ""
	}
	wrong = strings.ToLower(wrong)
	best, least := "", 1+max(1, min(len(wrong)/3, 3))
	for _, word := range known {
		if d := distance(wrong, strings.ToLower(word)); d < least {
			best, least = word, d
		}
	}
	if best != "" || len(wrong) < 3 {
		return best
	}
	for _, word := range known {
		if strings.HasPrefix(strings.ToLower(word), wrong) {
			return word
		}
	}
	return ""
}

// didYouMean is a sentence with the nearest word, "" when none is close.
func didYouMean(wrong string, known []string) string {
	if near := Nearest(wrong, known); near != "" {
		return "did you mean " + near + "?"
	}
	return ""
}

// distance counts the letters to insert, delete, replace or swap with their
// neighbour to turn a into b.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	two, one := make([]int, len(t)+1), make([]int, len(t)+1)
	row := make([]int, len(t)+1)
	for j := range one {
		one[j] = j
	}
	for i := range s {
		row[0] = i + 1
		for j := range t {
			cost := 1
			if s[i] == t[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, one[j+1]+1, one[j]+cost)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				row[j+1] = min(row[j+1], two[j-1]+1)
			}
		}
		two, one, row = one, row, two
	}
	return one[len(t)]
}
