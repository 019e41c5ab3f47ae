package provider

import (
	"strings"

	"raddle.dev/flow"
	"raddle.dev/internal/base/failure"
)

// CheckNames returns an error if a model does not exist that the caller named for an agent
// in a directory, before anything runs: override replaces every model of the agent, and
// model, of the configuration, is for graphs that name none. Both may be "".
func (r *Resolver) CheckNames(dir, override, model string) error {
	named := override
	kind := failure.Usage
	if override == "" {
		named = model
		kind = failure.Invalid
	}
	if named == "" {
		return nil
	}
	for _, id := range flow.SplitModels(named) {
		if !r.isKnown(dir, id) {
			return r.unknownModelError(dir, id, kind)
		}
	}
	return nil
}

// CheckRequested returns an error for a model that the request of another program names, unless it is one of a client:
// a request opens no file of this machine. It looks at no file, so that its answer says nothing about files.
func (r *Resolver) CheckRequested(id string) error {
	for _, one := range flow.SplitModels(id) {
		if err := r.checkRequested(one); err != nil {
			return err
		}
	}
	return nil
}

// checkRequested does the same for the id of one model.
func (r *Resolver) checkRequested(id string) error {
	c, _ := r.findClient(id)
	file := strings.HasPrefix(id, "script:") && c == nil || c != nil && c.Type == "script" && c.Base == ""
	switch {
	case id == "":
		return nil
	case file:
		return failure.NewUsage("name a model of a client; GET /api/v1/models and raddle models ls list them", "a request cannot name a file of the server as its model")
	case c == nil:
		err := r.unknownClientError(id)
		err.Kind = failure.Usage
		return err
	}
	return nil
}

// unknownModelError returns the error for an unknown model id of the caller.
func (r *Resolver) unknownModelError(dir, id string, kind failure.Kind) error {
	c, name := r.findClient(id)
	file, script := strings.CutPrefix(id, "script:")
	switch {
	case c != nil && name == "":
		return &failure.Error{
			Kind: kind,
			Msg:  "model " + id + ": the client lists no chat model",
			Next: "name the model: " + c.Name + ":MODEL",
		}
	case c != nil || script:
		return &failure.Error{
			Kind: kind,
			Msg:  "model " + id + ": there is no file " + r.dirs.ShortPath(r.transcriptPath(dir, c, file)),
		}
	}
	err := r.unknownClientError(id)
	err.Kind = kind
	return err
}

// CheckCallable returns an error if an agent cannot call its models, as far as that can
// be seen without a call: invalid transcripts, and clients that cannot be
// called. A graph may continue after a node fails, so that such an error
// would be found late. CheckCallable does not check keys; the call does.
func (r *Resolver) CheckCallable(a *flow.Agent) error {
	for _, id := range a.Models() {
		if err := r.checkCallable(a.Dir, id); err != nil {
			return err
		}
	}
	return nil
}

func (r *Resolver) checkCallable(dir, id string) error {
	c, name := r.findClient(id)
	file, isScript := strings.CutPrefix(id, "script:")
	switch {
	case c != nil && c.Type == "script":
		file = name
	case c != nil || !isScript:
		return nil
	}
	if _, err := r.findTranscript(dir, id, c, file).read(); err != nil {
		return &failure.Error{
			Kind: failure.Invalid,
			Msg:  "the transcript of model " + id + " cannot be replayed",
			Err:  err,
		}
	}
	return nil
}
