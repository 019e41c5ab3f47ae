package modeltest

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"raddle.dev/internal/process/provider"
	"raddle.dev/llm"
	"raddle.dev/llm/openai"
)

// A Target is the model that is tested.
type Target struct {
	Trial *provider.Trial // what is known about it
	// Open returns the model with a profile of a compatible server; "" is that of its client. Its connections go
	// through watch.
	Open func(ctx context.Context, profile string, watch func(http.RoundTripper) http.RoundTripper) (llm.Model, error)
}

// NewTarget returns the model with an id. A client without its key is an error.
func NewTarget(ctx context.Context, models *provider.Resolver, id string) (Target, error) {
	trial, err := provider.FindTrial(models, id)
	if err != nil {
		return Target{}, err
	}
	_, err = trial.Open(ctx, "", nil)
	return Target{Trial: trial, Open: trial.Open}, err
}

// chooseEffort returns the effort of the step with reasoning, "" for a model that has none, or of which raddle knows
// none.
func (t Target) chooseEffort() string {
	levels := slices.DeleteFunc(slices.Clone(t.Trial.Facts.Efforts), func(level string) bool { return level == "none" || level == "minimal" })
	switch {
	case slices.Contains(levels, "low"), len(t.Trial.Facts.Efforts) > 0 && t.Trial.Facts.EffortTokens:
		return "low"
	case len(levels) > 0:
		return levels[0]
	}
	return ""
}

// A dialogue is the conversation with the model.
type dialogue struct {
	target Target
	tap    *tap
	search *profileSearch // nil: the profile of the server is known
	usage  llm.Usage

	first    exchange // of the step with the first tool call
	reasoned bool     // a reply has had reasoning
}

// An exchange is a request of the dialogue and its reply.
type exchange struct {
	request llm.Request
	body    []byte
	reply   llm.Reply
	deltas  int // pieces of text in which the reply came
}

// ask sends a request. If the profile of the server is not known and the server refuses the request, it tries others.
func (s *dialogue) ask(ctx context.Context, r llm.Request) (exchange, error) {
	profile := ""
	if s.search != nil {
		profile = s.search.current.Name
	}
	e, err := s.send(ctx, profile, r)
	if s.search == nil || s.search.paused || !isRefusal(err) {
		return e, err
	}
	refused := []string{profile}
	first := err
	s.tap.blockLast()
	for _, p := range s.search.rankOthers(s.tap) {
		e, err := s.send(ctx, p.Name, r)
		switch {
		case err == nil:
			s.search.choose(p, refused)
			s.search.keepRefusal(first)
			return e, nil
		case errors.Is(err, errRefusedBefore):
		case isRefusal(err):
			s.tap.blockLast()
			s.search.keepRefusal(err)
		default:
			return e, err
		}
		refused = append(refused, p.Name)
	}
	s.search.keepRefusal(first)
	return e, first // no form helps: the model does not do what the request asks for
}

// send sends a request with a profile.
func (s *dialogue) send(ctx context.Context, profile string, r llm.Request) (exchange, error) {
	e := exchange{request: r}
	model, err := s.target.Open(ctx, profile, s.tap.Watch)
	if err != nil {
		return e, err
	}
	for d, err := range model.Stream(ctx, r) {
		switch {
		case err != nil:
			return e, err
		case d.Text != "":
			e.deltas++
		case d.Done != nil:
			e.reply = *d.Done
		}
	}
	e.body = s.tap.lastRequest()
	s.usage = s.usage.Add(e.reply.Usage)
	s.reasoned = s.reasoned || hasReasoning(e.reply)
	if s.search != nil {
		s.search.followEvidence(s.tap)
	}
	return e, nil
}

// hasReasoning reports whether a reply has reasoning, or says that there was some.
func hasReasoning(r llm.Reply) bool {
	return r.Usage.Reasoning > 0 || slices.ContainsFunc(r.Message.Parts, func(p llm.Part) bool { _, is := p.(llm.Reasoning); return is })
}

// isRefusal reports whether the server has refused a request for what is in it.
func isRefusal(err error) bool {
	var failure *llm.Error
	if !errors.As(err, &failure) || failure.Class != llm.BadRequest {
		return false
	}
	return failure.Status == http.StatusBadRequest || failure.Status == http.StatusUnprocessableEntity
}

// endsTest reports whether the other steps would end with the same error.
func endsTest(err error) bool {
	var failure *llm.Error
	if !errors.As(err, &failure) {
		return err != nil
	}
	return slices.Contains([]llm.Class{llm.Auth, llm.RateLimited, llm.Overloaded, llm.Network, llm.Timeout}, failure.Class)
}

// A profileSearch finds the profile of a server.
type profileSearch struct {
	profiles []openai.Profile // first the one of an unknown server, which has no name
	current  openai.Profile
	out      map[string]bool // profiles whose requests the server has refused where it took others
	paused   bool            // a refusal is about what is attached, and about no form
	refusals []string        // the different words of the server, without those about what no form changes
}

func newSearch() *profileSearch {
	plain := openai.Profile{}
	return &profileSearch{
		profiles: append([]openai.Profile{plain}, openai.ListProfiles()...),
		current:  plain,
		out:      map[string]bool{},
	}
}

// choose makes a profile the current one, and leaves out those that the server has refused instead.
func (s *profileSearch) choose(p openai.Profile, refused []string) {
	s.current = p
	for _, name := range refused {
		s.out[name] = true
	}
}

// keepRefusal keeps the words of a refusal.
func (s *profileSearch) keepRefusal(err error) {
	var failure *llm.Error
	if errors.As(err, &failure) && !slices.Contains(s.refusals, failure.Message) {
		s.refusals = append(s.refusals, failure.Message)
	}
}

// rankOthers returns the other profiles that the server may have, first those that explain what it has sent.
func (s *profileSearch) rankOthers(t *tap) []openai.Profile {
	others := slices.DeleteFunc(slices.Clone(s.profiles), func(p openai.Profile) bool { return p.Name == s.current.Name || s.out[p.Name] })
	slices.SortStableFunc(others, func(a, b openai.Profile) int { return weighEvidence(b, t) - weighEvidence(a, t) })
	return others
}

// followEvidence takes the profile of a server whose replies have members that must go back, before the server refuses
// a request without them.
func (s *profileSearch) followEvidence(t *tap) {
	others := s.rankOthers(t)
	if !hasEchoes(s.current, t) && len(others) > 0 && hasEchoes(others[0], t) {
		s.current = others[0]
	}
}

// hasEchoes reports whether replies have had a member that goes back with the profile as it came.
func hasEchoes(p openai.Profile, t *tap) bool {
	return t.hasHeard(slices.Concat(p.Echo, p.CallEcho)...)
}

// weighEvidence says how well a profile explains the members of replies.
func weighEvidence(p openai.Profile, t *tap) (weight int) {
	add := func(n int, explains bool) {
		if !explains {
			n = -n
		}
		weight += n
	}
	if len(p.Echo)+len(p.CallEcho) > 0 {
		add(4, hasEchoes(p, t)) // only one family of servers sends such members
	}
	switch p.Thoughts {
	case openai.ThoughtsTyped:
		add(2, t.hasHeard("thinking"))
	case openai.ThoughtsField:
		add(2, t.hasHeard("reasoning") && !t.hasHeard("reasoning_content"))
	case openai.ThoughtsPlain, openai.ThoughtsRequired:
		add(2, t.hasHeard("reasoning_content"))
	}
	if p.Effort != openai.EffortPlain || p.NewLimit || p.NoUsage || p.IDLength > 0 || len(p.Body) > 0 {
		weight-- // nothing in a reply says so
	}
	return weight
}
