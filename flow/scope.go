package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"raddle.dev/graph"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/memory"
)

// readScopes reads the values that outlive runs and that the node's placeholders name, as one effect for each scope:
// a node that runs again after a crash or an answer sees the values that it has seen before. A value that does not
// exist is the empty text. A key of the state with the name of a scope hides the scope.
func (nr *nodeRun) readScopes() error {
	wanted := map[string][]string{}
	for _, u := range nr.node.AllTemplates() {
		for _, part := range u.Template.Parts {
			if part.Path == nil {
				continue
			}
			if scope, key := part.Path.ScopedKey(); scope != "" {
				wanted[scope] = append(wanted[scope], key)
			}
		}
	}
	for _, scope := range []string{"user", "app"} {
		if _, hidden := nr.before.Value(scope); hidden || wanted[scope] == nil {
			continue
		}
		found, err := graph.Do(nr, "read "+scope, func(ctx context.Context) (map[string]string, error) { return nr.readScope(ctx, scope, wanted[scope]) })
		if err != nil {
			return fmt.Errorf("values of %s: %w", scope, err)
		}
		values := jsonvalue.NewObject()
		for _, key := range wanted[scope] {
			if text, ok := found[key]; ok {
				value, err := jsonvalue.ParseStored([]byte(text))
				if err != nil {
					return fmt.Errorf("value %s.%s: %w", scope, key, err)
				}
				values.Set(key, value)
			}
		}
		if nr.scopes == nil {
			nr.scopes = map[string]*jsonvalue.Object{}
		}
		nr.scopes[scope] = values
	}
	return nil
}

// readScope returns the values of keys as JSON.
func (nr *nodeRun) readScope(ctx context.Context, scope string, keys []string) (map[string]string, error) {
	found := map[string]string{}
	if nr.host().Retrieval.Memory == nil {
		return found, nil
	}
	st, err := nr.host().Retrieval.Memory()
	if err != nil {
		return nil, err
	}
	namespace := memory.UserNamespace(graph.UserOf(ctx))
	if scope == "app" {
		namespace = memory.AppNamespace(nr.agent.Name)
	}
	for _, key := range keys {
		e, err := st.GetEntry(ctx, namespace, key)
		switch {
		case errors.Is(err, memory.ErrNotFound):
		case err != nil:
			return nil, err
		default:
			text := nr.host().redact(string(e.Value))
			if !json.Valid([]byte(text)) {
				text = `"[redacted]"`
			}
			found[key] = text
		}
	}
	return found, nil
}
