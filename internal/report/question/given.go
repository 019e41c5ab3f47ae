package question

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/wording"
)

// A GivenAnswer is an answer that was given with a command, before its question was shown.
type GivenAnswer struct {
	Raw  string // as it was written
	ID   string // the question or node that it names; "": the next question
	Text string
	Used bool
}

// GivenAnswers are the answers of one command, in order.
type GivenAnswers []GivenAnswer

// ParseAnswers reads the answers of flags --answer. ID=TEXT answers the question ID if there is one.
// =TEXT, and everything else, is a text for the next question. An ID
// that is almost one is a typing error, and is refused.
func ParseAnswers(flags []string, q Names) (GivenAnswers, error) {
	var list GivenAnswers
	for _, raw := range flags {
		g := GivenAnswer{Raw: raw, Text: raw}
		if id, text, ok := strings.Cut(raw, "="); ok {
			switch near := wording.FindNearest(id, q.asking); {
			case id == "" || q.matchesID(id):
				g.ID = id
				g.Text = text
			case near != "" && len(id) >= leastTypo && !strings.ContainsAny(id, " \t\n"):
				return nil, failure.NewUsage(fmt.Sprintf("did you mean %s? For a text that begins like this, write --answer %s", wording.QuoteWord(near+"="+text), wording.QuoteWord("="+raw)),
					"--answer %s: no question and no node has the id %q", raw, id)
			}
		}
		list = append(list, g)
	}
	return list, nil
}

// leastTypo is the length from which a word can be a mistyped id.
const leastTypo = 3

// Names are the words that can name a question of a run.
type Names struct {
	nodes  map[string]bool // of a graph and its child graphs, by name and by path
	open   []graph.Question
	asking []string // open questions, and what may ask
}

// NamesOf returns the words for a run with open questions.
func NamesOf(open []graph.Question, s graph.Structure) Names {
	q := Names{nodes: map[string]bool{}, open: open}
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
			// a spawned agent has a path of its own, which is not known in advance
			for kind, child := range n.Children {
				add(prefix+n.Name+"/"+kind+"/", child)
			}
		}
	}
	add("", s)
	slices.Sort(q.asking[known:])
	return q
}

// indexes matches what distinguishes the tasks of one node in a path.
var indexes = pattern.CompileLater(`\[\d+\]`)

// matchesID reports whether a word is the id of an open question, a node, or the source of an
// open question.
func (q *Names) matchesID(id string) bool {
	node, _, _ := strings.Cut(indexes().ReplaceAllString(id, ""), "#")
	return q.nodes[node] || slices.ContainsFunc(q.open, func(o graph.Question) bool { _, ok := o.NamedBy(id); return ok })
}

// Preset returns all answers, for a run that has not asked yet.
func (list GivenAnswers) Preset() []graph.Answer {
	var answers []graph.Answer
	for _, g := range list {
		answers = append(answers, graph.Answer{ID: g.ID, Value: g.Text})
	}
	return answers
}

// MarkUsed marks the answers that were given ahead and used: those that are not in unused,
// which contains no secrets.
func (list GivenAnswers) MarkUsed(unused []graph.Answer, redact func(string) string) {
	unused = slices.Clone(unused)
	for i := range list {
		at := slices.IndexFunc(unused, func(a graph.Answer) bool { return a.ID == list[i].ID && a.Value == redact(list[i].Text) })
		if list[i].Used = at < 0; at >= 0 {
			unused = slices.Delete(unused, at, at+1)
		}
	}
}

// Take returns the answer for a question and marks it as used: one that names the question,
// the nearest first; with bare, also the first that names nothing. suits returns what is
// wrong with an answer that is far from the question, as [graph.Question.NamedBy] counts: if
// the question has options, such an answer is left for a later question. wrong is what is
// wrong with the answer that was taken.
func (list GivenAnswers) Take(q graph.Question, bare bool, suits func(text string, distance int) error) (text string, ok bool, wrong error) {
	found := -1
	nearest := 0
	for i, g := range list {
		distance, named := q.NamedBy(g.ID)
		if bare && g.ID == "" {
			distance = math.MaxInt
			named = true
		}
		if g.Used || !named || found >= 0 && distance >= nearest {
			continue
		}
		why := suits(g.Text, distance)
		if why == nil || distance == 0 || len(q.Options) == 0 {
			found = i
			nearest = distance
			wrong = why
		}
	}
	if found < 0 {
		return "", false, nil
	}
	list[found].Used = true
	return list[found].Text, true, wrong
}

// ListUnused returns the answers that no question took, as they were written.
func (list GivenAnswers) ListUnused() []string {
	var raws []string
	for _, g := range list {
		if !g.Used {
			raws = append(raws, g.Raw)
		}
	}
	return raws
}

// RefuseLate returns an error if an answer is for an open question whose deadline has passed. resume is the command that
// continues the run.
func (list GivenAnswers) RefuseLate(open []graph.Question, resume string) error {
	for _, q := range open {
		if q.Due.IsZero() || time.Now().Before(q.Due) {
			continue
		}
		for _, a := range list {
			if _, named := q.NamedBy(a.ID); named || a.ID == "" && len(open) == 1 {
				return failure.NewStale(resume+" continues without the answer", "the answer is too late: the deadline of question %s was %s",
					FormatName(q), q.Due.Local().Format(time.DateTime))
			}
		}
	}
	return nil
}
