package mcp

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A hit is a tool in the result of a search.
type hit struct {
	Name        string `json:"name"`
	Server      string `json:"server"`
	Description string `json:"description"`
}

// The usual constants of BM25: how soon a repeated word stops to count, and how much the length
// of a text counts.
const (
	saturation = 1.2
	lengthPart = 0.75
)

// rankTools ranks the tools of a server by Okapi BM25 over name, description and
// server, best first; equals are in the order of names. Tools that share no word with the query are
// left out.
func rankTools(server string, tools []*sdk.Tool, query string, most int) []hit {
	texts := make([][]string, len(tools))
	within := map[string]int{} // in how many tools a word is
	total := 0
	for i, t := range tools {
		texts[i] = splitWords(t.Name + " " + t.Description + " " + server)
		total += len(texts[i])
		for _, w := range uniqueWords(texts[i]) {
			within[w]++
		}
	}
	average := float64(total) / float64(max(1, len(tools)))
	asked := uniqueWords(splitWords(query))
	type ranked struct {
		tool  *sdk.Tool
		score float64
	}
	var found []ranked
	for i, t := range tools {
		score := 0.0
		for _, w := range asked {
			n := float64(countWord(texts[i], w))
			if n == 0 {
				continue
			}
			rare := math.Log(1 + (float64(len(tools)-within[w])+0.5)/(float64(within[w])+0.5))
			score += rare * n * (saturation + 1) / (n + saturation*(1-lengthPart+lengthPart*float64(len(texts[i]))/average))
		}
		if score > 0 {
			found = append(found, ranked{t, score})
		}
	}
	slices.SortStableFunc(found, func(a, b ranked) int { return cmp.Compare(b.score, a.score) })
	hits := []hit{}
	for _, r := range found[:min(most, len(found))] {
		hits = append(hits, hit{Name: r.tool.Name, Server: server, Description: r.tool.Description})
	}
	return hits
}

// splitWords returns the words of a text in lower case. It splits at every character
// other than letters and digits, and names like readFile before the capital.
func splitWords(text string) []string {
	var list []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			list = append(list, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	small := false
	for _, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			flush()
			small = false
			continue
		}
		if unicode.IsUpper(r) && small {
			flush()
		}
		small = unicode.IsLower(r)
		word = append(word, r)
	}
	flush()
	return list
}

func uniqueWords(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

func countWord(list []string, word string) (n int) {
	for _, w := range list {
		if w == word {
			n++
		}
	}
	return n
}
