package permission

// nearest returns the known word that a mistyped one most likely means, "" when
// none is close.
func nearest(wrong string, known []string) string {
	best, least := "", 3
	for _, word := range known {
		if d := distance(wrong, word); d < least && d < len(word) {
			best, least = word, d
		}
	}
	return best
}

// distance counts the bytes to insert, delete or replace to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
