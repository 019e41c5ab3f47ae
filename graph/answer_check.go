package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/graph/internal/panics"
	"raddle.dev/graph/internal/value"
)

// CheckAnswers reports whether Resume would accept the answers. The error is the one
// that Resume would return, usually an *AnswerError. Nothing is recorded.
func (r *Runner) CheckAnswers(ctx context.Context, thread string, answers ...Answer) error {
	if !r.Graph.isCompiled() {
		return errNoGraph
	}
	if r.Store == nil {
		return errors.New("graph: checking answers needs a store; give the Runner one")
	}
	s, err := loadThread(ctx, r.Store, thread, 0)
	switch {
	case err != nil:
		return err
	case s.head == 0:
		return fmt.Errorf("%w: %s", ErrNoThread, thread)
	case s.run.status.Final() && len(answers) > 0:
		return &AnswerError{ID: answers[0].ID, Reason: fmt.Sprintf("run %s is over (%s)", s.run.id, s.run.status)}
	}
	_, _, err = r.Graph.checkAnswers(s, answers)
	return err
}

// checkAnswers returns the question of each answer and the JSON of its value. The
// error is an *AnswerError.
func (g *Graph) checkAnswers(s *replay, answers []Answer) (asked []openQuestion, values [][]byte, err error) {
	open := s.openQuestions()
	var ids []string
	for _, o := range open {
		ids = append(ids, o.q.q.ID)
	}
	wrong := func(a Answer, why error) error {
		return &AnswerError{ID: a.ID, Open: ids, Reason: why.Error(), Err: why}
	}
	for _, a := range answers {
		if a.ID == "" {
			if len(open) != 1 {
				return nil, nil, wrong(a, fmt.Errorf("it names no question, and %d are open", len(open)))
			}
			a.ID = ids[0]
		}
		at := slices.Index(ids, a.ID)
		if at < 0 {
			return nil, nil, wrong(a, errors.New("no such question is open"))
		}
		if slices.ContainsFunc(asked, func(o openQuestion) bool { return o.q == open[at].q }) {
			return nil, nil, wrong(a, errors.New("answered twice"))
		}
		b, err := value.MarshalJSON(a.Value)
		if err != nil {
			return nil, nil, wrong(a, err)
		}
		q := &open[at].q.q
		if why := describeMismatch(q, b, a.Refused); why != "" {
			return nil, nil, wrong(a, errors.New(why))
		}
		if err := g.findAskingNode(s, open[at]).checkAnswer(q, a, b); err != nil {
			return nil, nil, wrong(a, err)
		}
		asked, values = append(asked, open[at]), append(values, b)
	}
	return asked, values, nil
}

// checkAnswer returns why the node refuses an answer with a value in JSON, or nil. If n
// is nil, every answer is accepted.
func (n *cnode) checkAnswer(q *Question, a Answer, value []byte) (err error) {
	if n == nil || n.CheckAnswer == nil || a.Refused != "" {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = panics.NewError("CheckAnswer of node "+n.Name, p)
		}
	}()
	a.Value = nil
	if err := json.Unmarshal(value, &a.Value); err != nil {
		return err
	}
	return n.CheckAnswer(*q, a)
}

// findAskingNode returns the node that asked a question, or nil if the graph no longer has it.
// The digest of a named child's graph decides which kind the child is.
func (g *Graph) findAskingNode(s *replay, o openQuestion) *cnode {
	path := ""
	for segment := range strings.SplitSeq(strings.TrimSuffix(o.path, "/"), "/") {
		if segment == "" { // the root
			break
		}
		path += segment + "/"
		task, _, named := strings.Cut(segment, "#")
		n := g.nodeOfTask(task)
		switch {
		case n == nil:
			return nil
		case !named:
			g = n.Graph
		default:
			g = n.childWith(s.ensureFrame(path).digest)
		}
		if g == nil {
			return nil
		}
	}
	return g.nodeNamed(o.q.q.Node)
}

// nodeOfTask returns the node of a task in the form step.node.index.
func (g *Graph) nodeOfTask(task string) *cnode {
	first, last := strings.IndexByte(task, '.'), strings.LastIndexByte(task, '.')
	if first < 0 || last <= first {
		return nil
	}
	return g.nodeNamed(task[first+1 : last])
}

// nodeNamed returns the node with a name, or nil.
func (g *Graph) nodeNamed(name string) *cnode {
	if at, ok := g.byName[name]; ok && at != end {
		return &g.nodes[at]
	}
	return nil
}

// childWith returns the graph of named children that has a digest, or nil.
func (n *cnode) childWith(digest string) *Graph {
	for _, kind := range sortedKeys(n.Children) {
		if g := n.Children[kind].Graph; g.digest == digest {
			return g
		}
	}
	return nil
}
