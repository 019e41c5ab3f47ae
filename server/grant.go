package server

import (
	"context"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
)

// A Grant is an answer that allows something: a call of a tool, or code that no one has trusted.
type Grant struct {
	Run      string
	Question string // its id
	Answer   string // for how long it counts, such as once or always; "": the answer has another form
	What     string // the beginning of the question, without secrets; "" for answers that were given before it
	Unasked  bool   // no run has asked for it: its caller can allow such things any number of times
}

// maxGrantText is the length of the longest text about a grant, in bytes.
const maxGrantText = 500

// noteGrants tells the caller of a context which of some answers allow something. open are the questions that they
// answered.
func noteGrants(ctx context.Context, s *Service, run string, open []graph.Question, answers []graph.Answer) {
	caller, _ := CallerOf(ctx)
	if caller.NoteGrant == nil {
		return
	}
	for _, a := range answers {
		i := slices.IndexFunc(open, func(q graph.Question) bool { return q.ID == a.ID || a.ID == "" })
		if i < 0 || a.Refused != "" || open[i].Kind != agent.KindPermission && open[i].Kind != flow.KindTrust {
			continue
		}
		if choice := choiceOf(a.Value); !isRefusal(choice) {
			caller.NoteGrant(Grant{Run: run, Question: open[i].ID, Answer: choice, What: shortenGrant(open[i].Prompt, s)})
		}
	}
}

// NoteAhead tells the caller of a context, at once, which answers it has given to questions that a run has not asked
// yet.
func NoteAhead(ctx context.Context, s *Service, run string, answers []graph.Answer) {
	caller, _ := CallerOf(ctx)
	var questions, choices []string
	for _, a := range answers {
		if choice := choiceOf(a.Value); a.Refused == "" && !isRefusal(choice) {
			questions = append(questions, a.ID)
			choices = append(choices, choice)
		}
	}
	if caller.NoteGrant != nil && len(questions) > 0 {
		caller.NoteGrant(Grant{Run: run, Question: shortenGrant(strings.Join(questions, ", "), s), Answer: shortenGrant(strings.Join(choices, ", "), s), Unasked: true})
	}
}

// NoteTrial tells the caller of a context that it has allowed a call that is not part of a run. what is the call.
func NoteTrial(ctx context.Context, s *Service, question, what string) {
	if caller, _ := CallerOf(ctx); caller.NoteGrant != nil {
		caller.NoteGrant(Grant{Question: question, Answer: "once", What: shortenGrant(what, s), Unasked: true})
	}
}

// isRefusal reports whether what an answer chooses allows nothing.
func isRefusal(choice string) bool { return slices.Contains([]string{"no", "false", "never"}, choice) }

// shortenGrant returns the beginning of a text, without secrets.
func shortenGrant(text string, s *Service) string {
	text = s.redact(strings.TrimSpace(text))
	if len(text) > maxGrantText {
		text = strings.ToValidUTF8(text[:maxGrantText], "") + "…"
	}
	return text
}
