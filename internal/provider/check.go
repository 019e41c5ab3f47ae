package provider

import (
	"strings"

	"raddle.dev/flow"
	"raddle.dev/internal/failure"
	"raddle.dev/llm/script"
)

// CheckNames returns an error if a model does not exist that the caller named for an agent
// in a directory, before anything runs: override replaces every model of the agent, and
// model, of the configuration, is for graphs that name none. Both may be "".
func (m *Resolver) CheckNames(dir, override, model string) error {
	if override != "" && !m.IsKnown(dir, override) {
		return m.unknownModelError(dir, override, failure.Usage)
	}
	if model != "" && override == "" && !m.IsKnown(dir, model) {
		return m.unknownModelError(dir, model, failure.Invalid)
	}
	return nil
}

// unknownModelError returns the error for an unknown model id of the caller.
func (m *Resolver) unknownModelError(dir, id string, kind failure.Kind) error {
	c, name := m.findClient(id)
	file, script := strings.CutPrefix(id, "script:")
	switch {
	case c != nil && name == "":
		return &failure.Error{Kind: kind, Msg: "model " + id + ": the client lists no chat model", Next: "name the model: " + c.Name + ":MODEL"}
	case c != nil || script:
		return &failure.Error{Kind: kind, Msg: "model " + id + ": there is no file " + m.dirs.ShortPath(m.transcriptPath(dir, c, file))}
	}
	err := m.unknownClientError(id)
	err.Kind = kind
	return err
}

// CheckCallable returns an error if an agent cannot call its models, as far as that can
// be seen without a call: invalid transcripts, and clients that cannot be
// called yet. A graph may continue after a node fails, so that such an error
// would be found late. CheckCallable does not check keys; the call does.
func (m *Resolver) CheckCallable(a *flow.Agent) error {
	for _, id := range a.Models() {
		if err := m.checkCallable(a.Dir, id); err != nil {
			return err
		}
	}
	return nil
}

func (m *Resolver) checkCallable(dir, id string) error {
	c, name := m.findClient(id)
	file, isScript := strings.CutPrefix(id, "script:")
	switch {
	case c != nil && c.Type == "bedrock":
		return notYet(c)
	case c != nil && c.Type == "script":
		file = name
	case c != nil || !isScript:
		return nil
	}
	if _, err := script.Open(m.transcriptPath(dir, c, file)); err != nil {
		return &failure.Error{Kind: failure.Invalid, Msg: "the transcript of model " + id + " cannot be replayed", Err: err}
	}
	return nil
}
