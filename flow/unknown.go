package flow

import (
	"fmt"
	"slices"
	"strings"
)

// unknown makes a finding for every key that no method of m has asked for. For
// a node, k is its type.
func (m *fields) unknown(node string, k *kind) []Finding {
	if m.src.node == nil {
		return nil
	}
	var found []Finding
	content := resolve(m.src.node).Content
	for i := 0; i+1 < len(content); i += 2 {
		key := content[i]
		if isBroken(key) || slices.Contains(m.known, key.Value) || len(found) >= maxFindings {
			continue
		}
		found = append(found, Finding{
			Severity: SeverityWarning, Class: ClassUnknownKey, Code: "unknown-key", Node: node,
			Message: fmt.Sprintf("unknown key `%s` is ignored", m.field(key.Value)),
			Hint:    m.keyHint(key.Value, k), Pos: m.src.place(key),
		})
	}
	return found
}

// keyHint tells what may be meant by an unknown key.
func (m *fields) keyHint(key string, k *kind) string {
	if key == "<<" {
		return "YAML 1.2 has no merge keys: write the fields out"
	}
	if k != nil {
		if owners := kindsWith(key); owners != nil {
			return fmt.Sprintf("only nodes of type %s have it, and this one is of type %s", strings.Join(owners, ", "), k.name)
		}
	}
	return suggest(key, m.known)
}

// maxSuggest is the number of words above which none is looked for.
const maxSuggest = 500

// suggest is a hint that names the known word closest to a wrong one, empty
// when none is close.
func suggest(wrong string, known []string) string {
	if len(known) > maxSuggest {
		return ""
	}
	best, bestDistance := "", 1+min((len(wrong)+1)/3, 3) // words of one letter have no neighbours
	for _, word := range known {
		if strings.EqualFold(word, wrong) {
			return fmt.Sprintf("did you mean `%s`?", word)
		}
		if d := distance(wrong, word, bestDistance); d < bestDistance {
			best, bestDistance = word, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean `%s`?", best)
}

// distance is the number of letters to insert, delete, replace or swap with
// their neighbour to turn a into b; limit or more is as good as limit.
func distance(a, b string, limit int) int {
	if abs(len(a)-len(b)) >= limit || len(a) > 64 {
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
	return last[len(b)]
}

func abs(n int) int { return max(n, -n) }
