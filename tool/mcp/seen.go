package mcp

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Seen remembers what servers have said about their tools, for as long as a process lives: what a tool may do only gets graver, and a definition that
// changes is noticed, also when a server is started again. The zero value is ready. It is safe for concurrent use.
type Seen struct {
	mu    sync.Mutex
	tools map[string]seenTool // by the file, the server and the name
}

// A seenTool is what is known of one tool.
type seenTool struct {
	first   string // the definition when the tool was seen for the first time
	gravest *sdk.ToolAnnotations
}

// merge returns the tools of a list with the gravest annotations that were seen of each.
func (s *Seen) merge(server string, list []*sdk.Tool) []*sdk.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tools == nil {
		s.tools = map[string]seenTool{}
	}
	merged := slices.Clone(list)
	for i, t := range list {
		key := server + "\x00" + t.Name
		known, ok := s.tools[key]
		if !ok {
			s.tools[key] = seenTool{first: describeTool(t), gravest: t.Annotations}
			continue
		}
		known.gravest = gravestAnnotations(known.gravest, t.Annotations)
		s.tools[key] = known
		one := *t
		one.Annotations = known.gravest
		merged[i] = &one
	}
	return merged
}

// isChanged reports whether a tool has another definition than when it was seen for the first time.
func (s *Seen) isChanged(server, name, definition string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.tools[server+"\x00"+name]
	return ok && known.first != definition
}

// describeTool returns the definition of a tool as a text: everything that a person or a model knows it by.
func describeTool(t *sdk.Tool) string {
	var b strings.Builder
	for _, part := range []any{t.Name, t.Title, t.Description, t.InputSchema, t.OutputSchema, t.Annotations} {
		text, err := json.Marshal(part)
		if err != nil {
			text = []byte("null") // it came as JSON
		}
		b.Write(append(text, '\n'))
	}
	return b.String()
}

// gravestAnnotations returns the graver one of each of two tools' annotations. Without annotations nothing is known to be harmless.
func gravestAnnotations(a, b *sdk.ToolAnnotations) *sdk.ToolAnnotations {
	if a == nil && b == nil {
		return nil
	}
	none := &sdk.ToolAnnotations{}
	if a == nil {
		a = none
	}
	if b == nil {
		b = none
	}
	either := func(a, b *bool) *bool {
		if a != nil && *a {
			return a
		}
		return b
	}
	g := *b
	g.ReadOnlyHint, g.IdempotentHint = a.ReadOnlyHint && b.ReadOnlyHint, a.IdempotentHint && b.IdempotentHint
	g.DestructiveHint, g.OpenWorldHint = either(a.DestructiveHint, b.DestructiveHint), either(a.OpenWorldHint, b.OpenWorldHint)
	return &g
}
