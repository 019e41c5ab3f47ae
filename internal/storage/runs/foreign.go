package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/agentbundle"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/foreign"
	"raddle.dev/llm"
)

// isRunThread reports whether a thread of a store holds runs.
func isRunThread(name string) bool { return !agentbundle.IsThread(name) && !foreign.IsThread(name) }

// OriginQuestion is the id of the question whether a run that came from elsewhere may continue. No node has such a
// name.
const OriginQuestion = "foreign run"

// These are the answers to the question whether a run that came from elsewhere may continue.
const (
	OriginContinue = "continue" // with nothing of what it brought but its prompt and its state
	OriginAccept   = "accept"   // with all of it, as it was shown
	OriginNo       = "no"
)

// ForkThread copies a thread at a point, with the mark that says where it came from.
func ForkThread(ctx context.Context, st *Store, at journal.Point, into string) error {
	if has, err := hasThread(ctx, st, into); err != nil || has {
		if err == nil {
			err = journal.ErrThreadExists
		}
		return err
	}
	if err := foreign.Copy(ctx, st, at.Thread, at.Seq, into); err != nil {
		return err
	}
	return history.Fork(ctx, st, at.Thread, at.Seq, into)
}

func hasThread(ctx context.Context, st *Store, name string) (bool, error) {
	for _, err := range st.Read(ctx, name, journal.Range{Limit: 1, Heads: true}) {
		return err == nil, err
	}
	return false, nil
}

// askAboutOrigin replaces the questions of a run that came from elsewhere by the one that a person must answer first:
// the run waits for that answer, whatever its journal says.
func (d *Detail) askAboutOrigin(ctx context.Context, st *Store, here string) error {
	if d.Snapshot.Status.Final() || d.Status == Running {
		return nil
	}
	q, err := AskAboutOrigin(ctx, st, d.Snapshot, here)
	if q == nil || err != nil {
		return err
	}
	d.Snapshot.Status, d.Snapshot.Questions = graph.Waiting, []graph.Question{*q}
	d.Status = graph.Waiting.String()
	d.Questions = []OpenQuestion{{q.ID, q.Prompt}}
	return nil
}

// AskAboutOrigin returns the question that a run must wait for because it came from elsewhere and no one has decided
// about it yet; nil: there is none. here is the directory in which the person works who will be asked.
func AskAboutOrigin(ctx context.Context, st *Store, snap *history.Snapshot, here string) (*graph.Question, error) {
	mark, err := foreign.FindCurrent(ctx, st, snap.Thread, 0)
	if !mark.IsOpen() || err != nil {
		return nil, err
	}
	rec, err := DecodeRecord(snap.Meta)
	if err != nil {
		return nil, nil // raddle cannot continue it
	}
	parts, err := history.Parts(ctx, st, snap.Thread)
	if err != nil {
		return nil, err
	}
	s := &originSheet{}
	s.add("This run was not started here: it came from %s at %s. Nothing of it runs before you decide.", s.quote(mark.From), mark.At.Local().Format(time.DateTime))
	if no := mark.Declined; no != nil {
		by := no.By
		if by == "" {
			by = "a person at a terminal"
		}
		s.add("%s has answered no at %s.", s.quote(by), no.At.Local().Format(time.DateTime))
	}
	s.describeStart(rec, here)
	s.describeAuthority(rec, snap, parts)
	s.describeNext(snap, parts)
	options := []string{OriginContinue, OriginAccept, OriginNo}
	s.add("%s: work in %s, in the mode ask, without the permissions, answers, models, variables and recorded results above; its current step starts again", OriginContinue, s.quote(here))
	if s.cut {
		options = []string{OriginContinue, OriginNo}
		s.add("More is there than can be shown, so it cannot be accepted as a whole.")
	} else {
		s.add("%s: with all that is shown above", OriginAccept)
	}
	return &graph.Question{ID: OriginQuestion, Node: OriginQuestion, Kind: flow.KindTrust, Prompt: strings.TrimRight(s.text.String(), "\n"), Options: options, Default: OriginContinue}, nil
}

// An originSheet is what a person reads about a run that came from elsewhere. Everything in it that the run says of
// itself is quoted.
type originSheet struct {
	text strings.Builder
	cut  bool // something was too long to be shown
}

// Limits of what is shown of one value, and of how many there are of a kind.
const (
	longestShown = 4000
	mostShown    = 40
)

func (s *originSheet) add(format string, args ...any) {
	fmt.Fprintf(&s.text, format+"\n", args...)
}

// quote returns a text without characters that could change how the lines around it look.
func (s *originSheet) quote(text string) string {
	if len(text) > longestShown {
		s.cut = true
		text = strings.ToValidUTF8(text[:longestShown], "") + "…"
	}
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Sprintf("%q", text)
	}
	return text
}

// addAll adds a line for each text, as far as they can be shown.
func (s *originSheet) addAll(what string, texts []string) {
	for i, text := range texts {
		if i == mostShown {
			s.cut = true
			s.add("%s: and %d more", what, len(texts)-i)
			return
		}
		s.add("%s: %s", what, s.quote(text))
	}
}

// describeStart says which agent runs, and where.
func (s *originSheet) describeStart(rec *Record, here string) {
	where := func(dir string) string {
		if !config.IsDir(dir) {
			return " (not on this machine)"
		}
		return ""
	}
	s.add("agent: %s, of the directory %s%s", s.quote(rec.Agent), s.quote(rec.Dir), where(rec.Dir))
	if rec.Bundle != "" {
		s.add("its files may also come from the store: bundle %s", s.quote(rec.Bundle))
	}
	var attached []string
	for _, f := range rec.Attached {
		attached = append(attached, fmt.Sprintf("%s, %s, %s", f.Name, f.MIME, wording.FormatBytes(f.Bytes)))
	}
	s.addAll("attached", attached)
	s.add("workspace: %s%s; you are in %s", s.quote(rec.Workspace), where(rec.Workspace), s.quote(here))
}

// describeAuthority lists what the run would be allowed to do because it says so.
func (s *originSheet) describeAuthority(rec *Record, snap *history.Snapshot, parts []history.RunPart) {
	mode := rec.Mode
	if mode == "" {
		mode = "edits"
	}
	s.add("mode: %s", s.quote(mode))
	var grants, settings []string
	for _, p := range parts {
		for _, v := range p.Values {
			switch v.Key {
			case agent.Grants.Name():
				grants = append(grants, listGrants(v)...)
			case agent.Overrides.Name():
				if text := string(flow.StoredValue(v.Tag, v.Parts)); text != "{}" && text != "null" {
					settings = append(settings, p.Path+" "+text)
				}
			}
		}
	}
	s.addAll("permission", grants)
	s.addAll("setting of the turn", settings)
	s.addAll("approved scripts", rec.Approved)
	if rec.Headless {
		s.add("headless: no one is asked")
	}
	var models []string
	for _, m := range []string{rec.Override, rec.Model} {
		if m != "" {
			models = append(models, m)
		}
	}
	s.addAll("model", models)
	s.addAll("setting of models", listModelSettings(rec))
	s.addAll("file in the prompt", rec.Files)
	if rec.Input != nil {
		text, err := json.Marshal(rec.Input)
		if err != nil {
			s.cut = true // it cannot be shown
		}
		s.add("input from the run above: %s", s.quote(string(text)))
	}
	for _, group := range []struct {
		what   string
		values map[string]string
	}{{"variable", rec.Variables}, {"variable of the environment", rec.Overrides}, {"value from your environment", rec.VariablesFrom}, {"prompt of node", rec.Templates}} {
		var list []string
		for name, value := range group.values {
			list = append(list, name+"="+value)
		}
		slices.Sort(list)
		s.addAll(group.what, list)
	}
	var ahead []string
	for _, a := range snap.Ahead {
		text, _ := a.Value.(json.RawMessage)
		if a.ID == "" {
			a.ID = "any question"
		}
		ahead = append(ahead, a.ID+" = "+string(text)+a.Refused)
	}
	s.addAll("answer given ahead", ahead)
}

// listModelSettings returns what a run changes in the requests of all of its models.
func listModelSettings(rec *Record) (list []string) {
	if rec.Temperature != nil {
		list = append(list, fmt.Sprint("temperature = ", *rec.Temperature))
	}
	if rec.TopP != nil {
		list = append(list, fmt.Sprint("top_p = ", *rec.TopP))
	}
	if rec.NoSpawn {
		list = append(list, "no agents as tools")
	}
	return list
}

// listGrants returns the rules of a stored list of permissions.
func listGrants(v history.StoredValue) (rules []string) {
	text := flow.StoredValue(v.Tag, v.Parts)
	if json.Unmarshal(text, &rules) != nil {
		return []string{string(text)}
	}
	return rules
}

// describeNext says what the run would do when it continues.
func (s *originSheet) describeNext(snap *history.Snapshot, parts []history.RunPart) {
	var calls, nodes, recorded, answered []string
	seen := map[string]bool{}
	addCalls := func(path string, list []llm.ToolCall) {
		for _, c := range list {
			if key := path + "\x00" + c.ID + "\x00" + string(c.Args); !seen[key] {
				seen[key] = true
				calls = append(calls, c.Name+" "+string(c.Args))
			}
		}
	}
	for _, p := range parts {
		for _, n := range p.Next {
			nodes = append(nodes, p.Path+n)
		}
		done := map[string]bool{}
		for _, id := range slices.Sorted(maps.Keys(p.Recorded)) {
			effect := graph.ParseEffectID(id)
			if key := agent.CallOfEffect(effect); key != "" {
				done[key] = true
				recorded = append(recorded, effect.Name+" "+key+" = "+string(p.Recorded[id]))
				continue
			}
			if flow.IsReply(id) {
				addCalls(p.Path, callsOfReply(p.Recorded[id]))
				continue
			}
			recorded = append(recorded, effect.Name+" = "+string(p.Recorded[id]))
		}
		if entries, err := agent.ReadEntries(p.Values, 0); err == nil {
			addCalls(p.Path, waitingCalls(entries))
		}
		for _, q := range p.Answered {
			answered = append(answered, q.ID+": "+q.Prompt)
		}
	}
	s.addAll("next node", nodes)
	s.addAll("call that waits", calls)
	s.addAll("recorded result", recorded)
	s.addAll("answered question", answered)
	var open []string
	for _, q := range snap.Questions {
		open = append(open, q.ID+": "+q.Prompt)
	}
	s.addAll("open question", open)
	var doubt []string
	for _, i := range snap.InDoubt {
		doubt = append(doubt, i.Path+strings.ReplaceAll(i.ID, "\x00", " "))
	}
	s.addAll("interrupted", doubt)
}

// callsOfReply returns the calls that a recorded reply of a model asks for.
func callsOfReply(data []byte) []llm.ToolCall {
	var talk struct {
		Message llm.Message `json:"message"`
	}
	if json.Unmarshal(data, &talk) != nil {
		return nil
	}
	return talk.Message.ToolCalls()
}

// waitingCalls returns the calls of a conversation that have no outcome.
func waitingCalls(entries []agent.Entry) (list []llm.ToolCall) {
	done := map[string]bool{}
	for i := range entries {
		for _, part := range entries[i].Message.Parts {
			if r, ok := part.(llm.ToolResult); ok {
				done[r.CallID] = true
			}
		}
	}
	for i := range entries {
		for _, c := range entries[i].Message.ToolCalls() {
			if !done[c.ID] {
				list = append(list, c)
			}
		}
	}
	return list
}

// ListInDoubt returns the effects of a run that were started and have no result, without those that it brought from
// elsewhere: what they say about processes is not about this machine.
func (s *Store) ListInDoubt(ctx context.Context, snap *history.Snapshot) ([]history.Intent, error) {
	mark, err := foreign.FindCurrent(ctx, s, snap.Thread, 0)
	if mark == nil || err != nil || len(snap.InDoubt) == 0 {
		return snap.InDoubt, err
	}
	switch {
	case mark.Accepted == nil:
		return nil, nil
	case mark.Accepted.Head == 0: // a copy begins without any
		return snap.InDoubt, nil
	}
	then, err := history.Inspect(ctx, s, snap.Thread, mark.Accepted.Head)
	if errors.Is(err, journal.ErrNoPoint) { // it was pruned
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(snap.InDoubt), func(i history.Intent) bool {
		return slices.ContainsFunc(then.InDoubt, func(o history.Intent) bool { return o.Path == i.Path && o.ID == i.ID && bytes.Equal(o.Note, i.Note) })
	}), nil
}
