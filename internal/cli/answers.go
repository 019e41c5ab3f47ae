package cli

import (
	"fmt"
	"slices"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/internal/app"
)

// given is an answer from the command line.
type given struct {
	raw  string // as it was written
	id   string // the question or node that it names; "": whatever is asked next
	text string
	used bool
}

// parseAnswers reads --answer flags: ID=TEXT names a question where ID is one,
// =TEXT is TEXT for whatever is asked, and so is everything else as it is. An ID
// that is almost one was mistyped, and is refused.
func parseAnswers(flags []string, q questions) ([]given, error) {
	var list []given
	for _, raw := range flags {
		g := given{raw: raw, text: raw}
		if id, text, ok := strings.Cut(raw, "="); ok {
			switch near := app.Nearest(id, q.asking); {
			case id == "" || q.names(id):
				g.id, g.text = id, text
			case near != "" && len(id) >= leastTypo && !strings.ContainsAny(id, " \t\n"):
				return nil, badUsage(fmt.Sprintf("did you mean %s? A text that begins like this is written --answer %s", quote(near+"="+text), quote("="+raw)),
					"--answer %s: no question and no node has the id %q", raw, id)
			}
		}
		list = append(list, g)
	}
	return list, nil
}

// leastTypo is the length from which a word can be taken for a mistyped id.
const leastTypo = 3

// questions are the words that may name a question.
type questions struct {
	nodes  map[string]bool // of a graph and those below it, by name and by path
	open   []graph.Question
	asking []string // what is open, and what may ask
}

// questionsOf are those of a run that has some open.
func questionsOf(open []graph.Question, s graph.Structure) questions {
	q := questions{nodes: map[string]bool{}, open: open}
	for _, o := range open {
		q.asking = append(q.asking, o.ID)
		if path := above(o.ID); path != "" {
			q.asking = append(q.asking, path[strings.LastIndexByte(path, '/')+1:])
		}
	}
	known := len(q.asking)
	var add func(prefix string, s graph.Structure)
	add = func(prefix string, s graph.Structure) {
		for _, n := range s.Nodes {
			q.nodes[n.Name], q.nodes[prefix+n.Name] = true, true
			if n.Kind == "approval" || n.Kind == "input" {
				q.asking = append(q.asking, prefix+n.Name)
			}
			if n.Child != nil {
				add(prefix+n.Name+"/", *n.Child)
			}
			for kind, child := range n.Children { // a spawned agent has a path of its own, which nobody knows before
				add(prefix+n.Name+"/"+kind+"/", child)
			}
		}
	}
	add("", s)
	slices.Sort(q.asking[known:])
	return q
}

// names tells whether a word is a question that is open, or a node, or who asks one.
func (q *questions) names(id string) bool {
	node, _, _ := strings.Cut(id, "#")
	return q.nodes[node] || slices.ContainsFunc(q.open, func(o graph.Question) bool { return o.ID == id || comesFrom(o, id) })
}

// comesFrom tells whether a word is the path of who asks a question, or the last part of
// that: the id of a spawned agent.
func comesFrom(q graph.Question, word string) bool {
	path := above(q.ID)
	return word != "" && (path == word || strings.HasSuffix(path, "/"+word))
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
// that names its node or who asks; with bare, also the first that names nothing.
func take(list []given, q graph.Question, bare bool) (text string, ok bool) {
	path, _, _ := strings.Cut(q.ID, "#")
	fits := []func(g given) bool{
		func(g given) bool { return g.id == q.ID },
		func(g given) bool { return g.id == path || g.id == q.Node || comesFrom(q, g.id) },
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
