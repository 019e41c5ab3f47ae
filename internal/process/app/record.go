package app

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/redact"
	"raddle.dev/internal/storage/runs"
)

// encodeRecord returns the record in the form that the journal stores: without secrets.
func (p *Process) encodeRecord(r *runs.Record) ([]byte, error) {
	kept := *r
	secrets := p.Tools.SecretSet()
	kept.Definition = secrets.Text(r.Definition)
	kept.Definitions, kept.Variables, kept.VariablesFrom = redactValues(secrets, r.Definitions), redactValues(secrets, r.Variables), map[string]string{}
	for name, value := range r.Variables {
		if from := p.env.FindName(value); from != "" && kept.Variables[name] != value {
			kept.VariablesFrom[name] = from
		}
	}
	if r.Templates != nil {
		kept.Templates = redactValues(secrets, r.Templates)
	}
	if r.Overrides != nil {
		kept.Overrides = redactValues(secrets, r.Overrides)
	}
	b, err := json.Marshal(kept)
	if err != nil {
		return nil, fmt.Errorf("the run's start record: %w", err)
	}
	return b, nil
}

// redactValues returns a map whose values contain no secrets. It is never nil.
func redactValues(secrets *redact.Set, values map[string]string) map[string]string {
	clean := map[string]string{}
	for name, value := range values {
		clean[name] = secrets.Text(value)
	}
	return clean
}

// restoreVariables restores, from the environment, the values of variables that the
// journal does not contain because they are secrets. next is advice for a value that is
// missing, with %s for the name of an environment variable.
func (p *Process) restoreVariables(r *runs.Record, next string) error {
	for name, value := range r.Variables {
		if !strings.Contains(value, redact.Mask) {
			continue
		}
		own := "LLM_AGENT_VAR_" + environ.FormatVariable(name)
		found, ok := p.env.LookupFirst([]string{own, r.VariablesFrom[name]})
		if !ok {
			return failure.NewStale(fmt.Sprintf(next, own), "the value of the variable %q is a secret, so it was not recorded", name)
		}
		p.Tools.SecretSet().Add(found)
		r.Variables[name] = found
	}
	for name, value := range r.Overrides {
		if strings.Contains(value, redact.Mask) {
			r.Overrides[name] = p.env.Get(name)
		}
	}
	return nil
}

// NewLearner returns a function that adds the secrets of a run to the redactor of the process: those of its agent and of
// the agents below it, and the values of its variables that are secrets. The function reads each directory and loads each
// agent once, however many runs it is called with, and is not safe for concurrent use.
func (p *Process) NewLearner() func(*runs.Record) {
	secrets := p.Tools.SecretSet()
	read := map[string]bool{}
	loaded := map[string]bool{}
	return func(r *runs.Record) {
		dirs := []string{r.Dir}
		for _, s := range r.Sources {
			if filepath.IsAbs(s.Path) {
				dirs = append(dirs, filepath.Dir(s.Path))
			}
		}
		for _, dir := range dirs {
			if !read[dir] {
				read[dir] = true
				p.Tools.AddDotenv(dir)
			}
		}
		for _, values := range []map[string]string{r.Variables, r.Overrides} {
			for name, value := range values {
				secrets.AddNamed(name, value)
			}
		}
		for name, from := range r.VariablesFrom {
			secrets.AddNamed(name, p.env.Get(from))
			secrets.AddNamed(from, p.env.Get(from))
		}
		if loaded[r.Dir] {
			return
		}
		loaded[r.Dir] = true
		if a, err := p.Load(LoadRequest{Agent: r.Dir}); err == nil { // loading adds the secrets of its MCP servers
			_ = a.Close()
		}
	}
}
