package cli

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/internal/wording"
)

// cliAnswer is an answer from the command line.
type cliAnswer struct {
	raw  string // as it was written
	id   string // the question or node that it names; "": the next question
	text string
	used bool
}

// parseAnswers reads --answer flags. ID=TEXT answers the question ID if there is one.
// =TEXT, and everything else, is a text for the next question. An ID
// that is almost one is a typing error, and is refused.
func parseAnswers(flags []string, q questionNames) ([]cliAnswer, error) {
	var list []cliAnswer
	for _, raw := range flags {
		g := cliAnswer{raw: raw, text: raw}
		if id, text, ok := strings.Cut(raw, "="); ok {
			switch near := wording.FindNearest(id, q.asking); {
			case id == "" || q.matchesID(id):
				g.id, g.text = id, text
			case near != "" && len(id) >= leastTypo && !strings.ContainsAny(id, " \t\n"):
				return nil, badUsage(fmt.Sprintf("did you mean %s? For a text that begins like this, write --answer %s", quoteWord(near+"="+text), quoteWord("="+raw)),
					"--answer %s: no question and no node has the id %q", raw, id)
			}
		}
		list = append(list, g)
	}
	return list, nil
}

// leastTypo is the length from which a word can be a mistyped id.
const leastTypo = 3

// questionNames are the words that can name a question.
type questionNames struct {
	nodes  map[string]bool // of a graph and its child graphs, by name and by path
	open   []graph.Question
	asking []string // open questions, and what may ask
}

// questionsOf returns the words for a run with open questions.
func questionsOf(open []graph.Question, s graph.Structure) questionNames {
	q := questionNames{nodes: map[string]bool{}, open: open}
	for _, o := range open {
		q.asking = append(q.asking, o.ID)
		if path := parentPath(o.ID); path != "" {
			q.asking = append(q.asking, path[strings.LastIndexByte(path, '/')+1:])
		}
	}
	known := len(q.asking)
	var add func(prefix string, s graph.Structure)
	add = func(prefix string, s graph.Structure) {
		for _, n := range s.Nodes {
			q.nodes[n.Name], q.nodes[prefix+n.Name] = true, true
			if n.Kind == "approval" || n.Kind == "input" || n.Kind == "tools" && prefix != "" {
				q.asking = append(q.asking, prefix+n.Name)
			}
			if n.Child != nil {
				add(prefix+n.Name+"/", *n.Child)
			}
			for kind, child := range n.Children { // a spawned agent has a path of its own, which is not known in advance
				add(prefix+n.Name+"/"+kind+"/", child)
			}
		}
	}
	add("", s)
	slices.Sort(q.asking[known:])
	return q
}

// indexes matches what distinguishes the tasks of one node in a path.
var indexes = regexp.MustCompile(`\[\d+\]`)

// matchesID reports whether a word is the id of an open question, a node, or the source of an
// open question.
func (q *questionNames) matchesID(id string) bool {
	node, _, _ := strings.Cut(indexes.ReplaceAllString(id, ""), "#")
	return q.nodes[node] || slices.ContainsFunc(q.open, func(o graph.Question) bool { _, ok := o.NamedBy(id); return ok })
}

// presetAnswers returns all answers for a run that has not asked yet.
func presetAnswers(list []cliAnswer) []graph.Answer {
	var answers []graph.Answer
	for _, g := range list {
		answers = append(answers, graph.Answer{ID: g.id, Value: g.text})
	}
	return answers
}

// markUsed marks the answers that were given ahead and used: those that are not in unused,
// which contains no secrets.
func markUsed(list []cliAnswer, unused []graph.Answer, redact func(string) string) {
	unused = slices.Clone(unused)
	for i := range list {
		at := slices.IndexFunc(unused, func(a graph.Answer) bool { return a.ID == list[i].id && a.Value == redact(list[i].text) })
		if list[i].used = at < 0; at >= 0 {
			unused = slices.Delete(unused, at, at+1)
		}
	}
}

// takeAnswer returns the answer for a question and marks it as used: one that names the question,
// the nearest first; with bare, also the first that names nothing. suits returns what is
// wrong with an answer that is far from the question, as [graph.Question.NamedBy] counts: if
// the question has options, such an answer is left for a later question. wrong is what is
// wrong with the answer that was taken.
func takeAnswer(list []cliAnswer, q graph.Question, bare bool, suits func(text string, far int) error) (text string, ok bool, wrong error) {
	found, nearest := -1, 0
	for i, g := range list {
		far, named := q.NamedBy(g.id)
		if bare && g.id == "" {
			far, named = math.MaxInt, true
		}
		if g.used || !named || found >= 0 && far >= nearest {
			continue
		}
		why := suits(g.text, far)
		if why == nil || far == 0 || len(q.Options) == 0 {
			found, nearest, wrong = i, far, why
		}
	}
	if found < 0 {
		return "", false, nil
	}
	list[found].used = true
	return list[found].text, true, wrong
}

// unusedAnswers returns the answers that no question took.
func unusedAnswers(list []cliAnswer) []string {
	var raws []string
	for _, g := range list {
		if !g.used {
			raws = append(raws, g.raw)
		}
	}
	return raws
}
