package app

import (
	"strings"

	"raddle.dev/flow"
	"raddle.dev/llm/script"
)

// checkModels returns an error if a model that the caller named does not exist,
// before anything runs.
func (p *Process) checkModels(r *Record) error {
	m := p.models()
	if id := r.Override; id != "" && !m.Known(r.Dir, id) {
		return m.notKnown(r.Dir, id, Usage)
	}
	if id := r.Model; id != "" && r.Override == "" && !m.Known(r.Dir, id) {
		return m.notKnown(r.Dir, id, Invalid)
	}
	return nil
}

// notKnown returns the error for an unknown model id of the caller.
func (m *models) notKnown(dir, id string, kind Kind) error {
	c, name := m.find(id)
	file, script := strings.CutPrefix(id, "script:")
	switch {
	case c != nil && name == "":
		return &Error{Kind: kind, Msg: "model " + id + ": the client lists no chat model", Next: "name the model: " + c.Name + ":MODEL"}
	case c != nil || script:
		return &Error{Kind: kind, Msg: "model " + id + ": there is no file " + m.process.Dirs.Short(m.transcript(dir, c, file))}
	}
	err := m.unknown(id)
	err.Kind = kind
	return err
}

// Callable returns an error if an agent cannot call its models, as far as that can
// be seen without a call: invalid transcripts, and clients that cannot be
// called yet. A graph may continue after a node fails, so that such an error
// would be found late. Callable does not check keys; the call does.
func (p *Process) Callable(a *flow.Agent) error {
	m := p.models()
	for _, id := range a.Models() {
		if err := m.callable(a.Dir, id); err != nil {
			return err
		}
	}
	return nil
}

func (m *models) callable(dir, id string) error {
	c, name := m.find(id)
	file, isScript := strings.CutPrefix(id, "script:")
	switch {
	case c != nil && c.Type == "bedrock":
		return notYet(c)
	case c != nil && c.Type == "script":
		file = name
	case c != nil || !isScript:
		return nil
	}
	if _, err := script.Open(m.transcript(dir, c, file)); err != nil {
		return &Error{Kind: Invalid, Msg: "the transcript of model " + id + " cannot be replayed", Err: err}
	}
	return nil
}
