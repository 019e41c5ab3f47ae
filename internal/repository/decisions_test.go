package repository_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Decisions are numbered in order, and each has at most ten lines.
func TestDecisions(t *testing.T) {
	text, err := os.ReadFile("docs/decisions.md")
	if err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`^(\d+)\. `)
	for i, entry := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(entry, "\n")
		m := number.FindStringSubmatch(title)
		if m == nil || m[1] != strconv.Itoa(i+1) {
			t.Errorf("docs/decisions.md: the entry %q should have the number %d: append an entry, and never move one", title, i+1)
		}
		lines := 0
		for line := range strings.Lines(body) {
			if strings.TrimSpace(line) != "" {
				lines++
			}
		}
		if lines > 10 {
			t.Errorf("docs/decisions.md: the entry %q has %d lines, the limit is 10: say why and what was rejected, and leave the rest to code and guides", title, lines)
		}
	}
}
