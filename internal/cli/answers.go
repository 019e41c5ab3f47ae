package cli

import (
	"slices"
	"strings"

	"raddle.dev/graph"
)

// given is an answer from the command line.
type given struct {
	raw  string // as it was written
	id   string // the question or node that it names; "": whatever is asked next
	text string
	used bool
}

// parseAnswers reads --answer flags: ID=TEXT names a question where ID is one,
// =TEXT is TEXT for whatever is asked, and so is everything else as it is.
func parseAnswers(flags []string, names func(id string) bool) []given {
	var list []given
	for _, raw := range flags {
		g := given{raw: raw, text: raw}
		if id, text, ok := strings.Cut(raw, "="); ok && (id == "" || names(id)) {
			g.id, g.text = id, text
		}
		list = append(list, g)
	}
	return list
}

// names tells whether a word is a question that is open, or a node of a graph
// by its name or path.
func names(open []graph.Question, s graph.Structure) func(string) bool {
	nodes := map[string]bool{}
	var add func(prefix string, s graph.Structure)
	add = func(prefix string, s graph.Structure) {
		for _, n := range s.Nodes {
			nodes[n.Name], nodes[prefix+n.Name] = true, true
			if n.Child != nil {
				add(prefix+n.Name+"/", *n.Child)
			}
		}
	}
	add("", s)
	return func(id string) bool {
		node, _, _ := strings.Cut(id, "#")
		return nodes[node] || slices.ContainsFunc(open, func(q graph.Question) bool { return q.ID == id })
	}
}

// ahead are all answers for a run that has asked nothing yet.
func ahead(list []given) []graph.Answer {
	var answers []graph.Answer
	for _, g := range list {
		answers = append(answers, graph.Answer{ID: g.id, Value: g.text})
	}
	return answers
}

// take uses an answer up for a question: one that names it by its id, then one
// that names its node; with bare, also the first that names nothing.
func take(list []given, q graph.Question, bare bool) (text string, ok bool) {
	path, _, _ := strings.Cut(q.ID, "#")
	fits := []func(g given) bool{
		func(g given) bool { return g.id == q.ID },
		func(g given) bool { return g.id == path || g.id == q.Node },
		func(g given) bool { return bare && g.id == "" },
	}
	for _, fit := range fits {
		i := slices.IndexFunc(list, func(g given) bool { return !g.used && fit(g) })
		if i >= 0 {
			list[i].used = true
			return list[i].text, true
		}
	}
	return "", false
}

// unused are the answers that nothing asked for.
func unused(list []given) []string {
	var raws []string
	for _, g := range list {
		if !g.used {
			raws = append(raws, g.raw)
		}
	}
	return raws
}
