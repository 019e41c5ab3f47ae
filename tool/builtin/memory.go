package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"raddle.dev/memory"
	"raddle.dev/tool"
)

// Memory is where the tools memory__save, memory__search and memory__forget keep values.
type Memory struct {
	// Open returns the store. It is called by each call of a tool.
	Open func() (memory.Store, error)
	// User returns for whom the call is made: no other user sees what it saves; nil or "": no
	// user is known.
	User func(ctx context.Context) string
	// HasSecret reports whether a text contains a value that must not be stored; nil: none does.
	HasSecret func(text string) bool
	// Embedder returns the model that finds entries by meaning as well; nil, or a nil model: by words only. If the
	// model fails, entries are saved and found without it.
	Embedder func() memory.Embedder
}

// embedder returns the model of the memory; nil: there is none.
func (m *Memory) embedder() memory.Embedder {
	if m.Embedder == nil {
		return nil
	}
	return m.Embedder()
}

const maxHits = 50 // of one search

var memoryTools = []definition{
	{
		name:   "memory__save",
		effect: tool.Idempotent,
		about:  "Remember something beyond this conversation: later conversations find it with memory__search. What was under the same key is replaced.",
		params: []param{
			{name: "key", required: true, about: "Short name, such as favourite_colour"},
			{name: "value", required: true, about: "What to remember: a text, or JSON"},
			{name: "days", number: true, about: "Forget it after this many days; without it, never"},
		},
		touches: memoryTouches("changes the memory that later runs read"),
		run:     saveMemory,
	},
	{
		name:     "memory__search",
		effect:   tool.ReadOnly,
		parallel: true,
		about:    "Find what memory__save has remembered, in this and in earlier conversations. Without a query, list what was remembered last.",
		params: []param{
			{name: "query", about: "What to look for"},
			{name: "limit", number: true, about: "How many entries at most; 10 if it is left out"},
		},
		run: searchMemory,
	},
	{
		name:    "memory__forget",
		effect:  tool.Idempotent,
		about:   "Delete what memory__save has remembered under a key.",
		params:  []param{{name: "key", required: true, about: "Its key"}},
		touches: memoryTouches("deletes something from the memory that later runs read"),
		run:     forgetMemory,
	},
}

// memoryTouches returns a function that makes each call ask, unless a rule names the tool.
func memoryTouches(why string) func(Host, arguments) (tool.Touch, error) {
	return func(Host, arguments) (tool.Touch, error) { return tool.Touch{Unknown: why}, nil }
}

// openMemory returns the store and the namespace of the call.
func (h Host) openMemory(ctx context.Context) (memory.Store, string, error) {
	if h.Memory == nil || h.Memory.Open == nil {
		return nil, "", errors.New("there is no memory here")
	}
	st, err := h.Memory.Open()
	if err != nil {
		return nil, "", err
	}
	user := ""
	if h.Memory.User != nil {
		user = h.Memory.User(ctx)
	}
	return st, memory.UserNamespace(user), nil
}

func saveMemory(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	st, namespace, err := h.openMemory(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	key := strings.TrimSpace(a["key"])
	value := a["value"]
	if h.Memory.HasSecret != nil && (h.Memory.HasSecret(key) || h.Memory.HasSecret(value)) {
		return tool.FailedResult("this contains a secret of the person who runs you: secrets are not remembered"), nil
	}
	var ttl time.Duration
	if a["days"] != "" {
		days, err := strconv.Atoi(a["days"])
		if err != nil || days < 1 || days > int(memory.MaxTTL/(24*time.Hour)) {
			return tool.FailedResult("days must be a whole number from 1 to %d", int(memory.MaxTTL/(24*time.Hour))), nil
		}
		ttl = time.Duration(days) * 24 * time.Hour
	}
	e, err := memory.CheckEntry(memory.Entry{Namespace: namespace, Key: key, Value: memory.ParseValue(value)}, ttl)
	if err != nil {
		return tool.FailedResult("%v", err), nil
	}
	if err := memory.SetVector(ctx, &e, h.Memory.embedder()); err != nil && ctx.Err() != nil {
		return tool.Result{}, ctx.Err()
	}
	if err := st.PutEntry(ctx, e, ttl); err != nil {
		return tool.Result{}, err
	}
	return tool.TextResult(fmt.Sprintf("saved under the key %q", key)), nil
}

func searchMemory(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	st, namespace, err := h.openMemory(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	limit := memory.DefaultLimit
	if a["limit"] != "" {
		if limit, err = strconv.Atoi(a["limit"]); err != nil || limit < 1 {
			return tool.FailedResult("limit must be a whole number from 1 to %d", maxHits), nil
		}
	}
	limit = min(limit, maxHits)
	var found []memory.Entry
	if strings.TrimSpace(a["query"]) == "" {
		found, err = memory.ListNewest(ctx, st, namespace, limit)
	} else {
		var hits []memory.Hit
		model := h.Memory.embedder()
		hits, err = memory.Search(ctx, st, namespace, a["query"], memory.SearchOptions{Limit: limit, Embedder: model})
		if err != nil && model != nil && ctx.Err() == nil {
			hits, err = memory.Search(ctx, st, namespace, a["query"], memory.SearchOptions{Limit: limit})
		}
		for _, hit := range hits {
			found = append(found, hit.Entry)
		}
	}
	if err != nil {
		return tool.Result{}, err
	}
	if len(found) == 0 {
		return tool.TextResult("nothing is remembered about this"), nil
	}
	type line struct {
		Key   string          `json:"key"`
		Value json.RawMessage `json:"value"`
		Saved string          `json:"saved"`
	}
	lines := make([]line, len(found))
	for i, e := range found {
		lines[i] = line{e.Key, e.Value, e.Updated.UTC().Format(time.DateOnly)}
	}
	return tool.JSONResult(lines), nil
}

func forgetMemory(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	st, namespace, err := h.openMemory(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	key := strings.TrimSpace(a["key"])
	switch err := st.DeleteEntry(ctx, namespace, key); {
	case errors.Is(err, memory.ErrNotFound):
		return tool.TextResult(fmt.Sprintf("nothing is remembered under the key %q", key)), nil
	case err != nil:
		return tool.Result{}, err
	}
	return tool.TextResult(fmt.Sprintf("forgot what was under the key %q", key)), nil
}
