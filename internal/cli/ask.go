package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/question"
	"raddle.dev/internal/term"
	"raddle.dev/internal/wording"
	"raddle.dev/tool"
)

// An asker finds answers to questions: on the command line, from the person at the
// terminal, or in the default of the file.
type asker struct {
	env        *environment
	given      []cliAnswer
	inDoubt    tool.Doubt    // for every call that was interrupted; if unset, the person is asked
	prompter   term.Prompter // nil if there is no person to ask
	stopped    func() bool
	check      func(a graph.Answer) error          // why an answer would be refused; nil if the caller reports it
	onDefault  func(q graph.Question, text string) // called with every answer that comes from the file's default
	usedAnswer bool                                // an answer of the command line was used

	// skip is called with the reason when the person leaves a question open. Then the others are
	// still asked, unless the person pressed Ctrl-C. If it is nil, no more questions are asked.
	skip    func(err error)
	skipped map[string]bool // ids of the questions that were left open; they are not asked again
	shown   map[string]bool // ids of the questions that the person has seen
}

// answerQuestions is an app.AskFunc. Answers of the command line that name a question go to
// it, the others to the open questions in the order in which they were asked.
func (a *asker) answerQuestions(ctx context.Context, open []graph.Question) (answers []graph.Answer, park bool, err error) {
	values, err := a.takeFlagAnswers(open)
	if err != nil {
		return nil, false, err
	}
	left, nth := 0, 0
	for _, v := range values {
		if v == nil {
			left++
		}
	}
	for i, q := range open {
		if values[i] == nil && !park && !a.skipped[q.ID] {
			nth++
			if values[i], park, err = a.askPerson(ctx, q, question.FormatAskerLine(q, nth, left)); err != nil {
				return nil, false, err
			}
		}
		if values[i] != nil {
			answers = append(answers, graph.Answer{ID: q.ID, Value: values[i]})
		}
	}
	return answers, park, nil
}

// takeFlagAnswers returns the answers of the command line to open questions, nil if
// there are none. If it has only answers that no question takes, it returns an error.
func (a *asker) takeFlagAnswers(open []graph.Question) (values []any, err error) {
	values = make([]any, len(open))
	var passed error // why the first answer was not used
	for _, bare := range []bool{false, true} {
		for i, q := range open {
			if values[i] != nil {
				continue
			}
			text, ok, wrong := takeAnswer(a.given, q, bare, func(text string, far int) error {
				why := a.checkFlagAnswer(q, text, far)
				if passed == nil {
					passed = why
				}
				return why
			})
			if wrong != nil {
				return nil, wrong
			}
			if ok {
				values[i], a.usedAnswer = text, true
			}
		}
	}
	for i, q := range open {
		if values[i] == nil && q.Kind == agent.KindDoubt && slices.Contains(q.Options, string(a.inDoubt)) {
			values[i] = string(a.inDoubt)
		}
	}
	if passed != nil && a.prompter == nil && !a.usedAnswer && !slices.ContainsFunc(values, func(v any) bool { return v != nil }) {
		return nil, passed
	}
	return values, nil
}

// checkFlagAnswer returns why a text of the command line is not an answer to a question, or nil. far
// is the distance of the question from what the answer names.
func (a *asker) checkFlagAnswer(q graph.Question, text string, far int) error {
	refuse := func(reason string) error { return &graph.AnswerError{ID: q.ID, Open: []string{q.ID}, Reason: reason} }
	switch {
	case q.Kind == flow.KindTrust && text != "no":
		return refuse("consent is given at a terminal, never by --answer")
	case q.Kind == agent.KindPermission && far > 0 && !slices.Contains(q.Options, text):
		return refuse("it must be one of " + joinWords(q.Options) + "; to refuse with a reason, name the question: --answer " + quoteWord(q.ID+"=REASON"))
	}
	return a.checkAnswer(q, text)
}

// checkAnswer returns why the run would refuse an answer, or nil.
func (a *asker) checkAnswer(q graph.Question, answer any) error {
	if a.check == nil {
		return nil
	}
	return a.check(graph.Answer{ID: q.ID, Value: answer})
}

// askPerson asks the person, below a line that says who asks. Without a person it takes the
// question's default. It asks again if the question does not accept the answer.
func (a *asker) askPerson(ctx context.Context, q graph.Question, who string) (answer any, park bool, err error) {
	switch {
	case a.stopped():
		return nil, true, nil
	case a.prompter == nil && q.Default != "" && q.Rejected == "" && takesDefault(q):
		a.onDefault(q, q.Default)
		return q.Default, false, nil
	case a.prompter == nil:
		return nil, false, nil
	}
	a.env.err.ClearLive()
	if a.shown == nil {
		a.shown = map[string]bool{}
	}
	a.shown[q.ID] = true
	if who != "" {
		a.env.err.PrintLine(a.env.err.Paint(term.Cyan, who))
	}
	q.Rejected = flow.AnswerHeadline(q.Rejected)
	for answer, err = question.Ask(ctx, a.prompter, q, a.env.err.Colors); err == nil; answer, err = question.AskAgain(ctx, a.prompter, q, answer, a.env.err.Colors) {
		why := (*graph.AnswerError)(nil)
		if err := a.checkAnswer(q, answer); !errors.As(err, &why) {
			return answer, false, err
		}
		a.env.err.PrintLine(a.env.err.Paint(term.Yellow, plainText(flow.AnswerHeadline(why.Reason))))
	}
	switch {
	case errors.Is(err, term.ErrLeftOpen) && a.skip != nil:
		if a.skipped == nil {
			a.skipped = map[string]bool{}
		}
		a.skipped[q.ID] = true
		a.skip(err)
		return nil, errors.Is(err, term.ErrInterrupted), nil
	case errors.Is(err, term.ErrLeftOpen) || ctx.Err() != nil:
		return nil, true, nil
	}
	return nil, false, fmt.Errorf("question %s cannot be asked on this terminal: %w", q.ID, err)
}

// takesDefault reports whether the default of a question answers it if there is no
// person. The default of a question for consent is only what a person chooses with Enter.
func takesDefault(q graph.Question) bool {
	return q.Kind != agent.KindPermission && q.Kind != agent.KindDoubt && q.Kind != flow.KindTrust
}

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
		if path := question.ParentPath(o.ID); path != "" {
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
