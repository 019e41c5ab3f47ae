package team

import "strings"

// maxPurpose is the number of characters of a prompt or a subject that describe
// the purpose of an agent.
const maxPurpose = 60

// firstWords returns the beginning of a text in one line. It is cut at the end
// of a word if that keeps at least half of the allowed length.
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
