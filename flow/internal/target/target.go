// Package target finds the nodes that the text of a script names as what runs next.
package target

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/strictyaml"
)

// A Script is a node that the text of a script names in _next.
type Script struct {
	Node string
	Pos  strictyaml.Pos // in the script
}

// nextValue matches the place where a script gives _next its value: as a member of an object, an assignment or an
// argument.
var nextValue = pattern.CompileLater(`\b_next\b\\?["']?\]?\s*[:=]\s*`)

// These match what follows: a text in quotes, which may be escaped, or a variable of bash in quotes.
var (
	quotedTarget   = pattern.CompileLater(`^\\?["']([A-Za-z0-9_][A-Za-z0-9_.-]*)\\?["']`)
	variableTarget = pattern.CompileLater(`^\\?["']?\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?\\?["']?`)
	choiceTarget   = pattern.CompileLater(`(?:\belse\s+|[?:]\s*)["']([A-Za-z0-9_][A-Za-z0-9_.-]*)["']`)
)

// FindAll returns the nodes that the text of a script names literally in _next, in the order of the text. It
// finds objects of JSON, Python and JavaScript, both values of a choice on one line, and the texts that bash assigns to
// a variable. What a script computes is not found.
func FindAll(path string, data []byte) []Script {
	var found []Script
	add := func(node, line string, number, at int) {
		target := Script{node, strictyaml.Pos{File: path, Line: number, Col: 1 + utf8.RuneCountInString(line[:at])}}
		if !slices.Contains(found, target) {
			found = append(found, target)
		}
	}
	lines := strings.Split(string(data), "\n")
	for i, line := range lines {
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "//") {
			continue
		}
		for _, m := range nextValue().FindAllStringIndex(line, -1) {
			rest := line[m[1]:]
			if v := variableTarget().FindStringSubmatch(rest); v != nil {
				for j, other := range lines {
					for _, a := range findAssignments(other, v[1]) {
						add(other[a[0]:a[1]], other, j+1, a[0])
					}
				}
				continue
			}
			q := quotedTarget().FindStringSubmatchIndex(rest)
			if q != nil {
				add(rest[q[2]:q[3]], line, i+1, m[1]+q[2])
			}
			rest = rest[:choiceLength(rest)]
			for _, c := range choiceTarget().FindAllStringSubmatchIndex(rest, -1) {
				if q != nil && c[0] < q[1] {
					continue
				}
				add(rest[c[2]:c[3]], line, i+1, m[1]+c[2])
			}
		}
	}
	return found
}

// choiceLength returns the length of the value with which a text begins: up to a comma or the end of the object.
func choiceLength(text string) int {
	if end := strings.IndexAny(text, ",}"); end >= 0 {
		return end
	}
	return len(text)
}

// findAssignments returns where a line of bash assigns a literal word to a variable.
func findAssignments(line, variable string) (list [][2]int) {
	if strings.HasPrefix(strings.TrimSpace(line), "#") {
		return nil
	}
	pattern := regexp.MustCompile(`(?:^|[\s;(&|])` + regexp.QuoteMeta(variable) + `=["']?([A-Za-z0-9_][A-Za-z0-9_.-]*)["']?(?:$|[\s;)&|])`)
	for _, m := range pattern.FindAllStringSubmatchIndex(line, -1) {
		list = append(list, [2]int{m[2], m[3]})
	}
	return list
}
