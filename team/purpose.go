package team

import "strings"

// maxPurpose is how many characters of a prompt or a subject say what an agent is for.
const maxPurpose = 60

// firstWords returns the beginning of a text in one line, cut at a word where that
// leaves at least half of what may be shown.
func firstWords(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= maxPurpose {
		return string(runes)
	}
	short := string(runes[:maxPurpose-3])
	if at := strings.LastIndexByte(short, ' '); at >= len(short)/2 {
		short = short[:at]
	}
	return short + "..."
}
