package mcp

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Seen remembers what servers have said about their tools, for as long as a process lives: what a tool may do only gets
// graver, and a definition that changes is noticed, also when a server is started again. It remembers mostSeen names of
// each server; of tools with other names nothing counts as known. The zero value is ready. It is safe for concurrent
// use.
type Seen struct {
	mu    sync.Mutex
	tools map[string]map[toolDigest]seenTool // by the file and the server, and by the name
}

// mostSeen is how many tools of one server are remembered.
const mostSeen = 10_000

// A toolDigest is kept in place of a text of a server, which may have any length.
type toolDigest [sha256.Size]byte

func digestOf(text string) toolDigest { return sha256.Sum256([]byte(text)) }

// A seenTool is what is known of one tool.
type seenTool struct {
	first   toolDigest           // of the definition when the tool was seen for the first time
	gravest *sdk.ToolAnnotations // nil: there were none
}

// merge returns the tools of a list with the gravest annotations that were seen of each.
func (s *Seen) merge(server string, list []*sdk.Tool) []*sdk.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tools == nil {
		s.tools = map[string]map[toolDigest]seenTool{}
	}
	tools := s.tools[server]
	if tools == nil {
		tools = map[toolDigest]seenTool{}
		s.tools[server] = tools
	}
	merged := slices.Clone(list)
	for i, t := range list {
		name := digestOf(t.Name)
		known, ok := tools[name]
		if !ok && len(tools) < mostSeen {
			tools[name] = seenTool{first: digestOf(describeTool(t)), gravest: withoutTitle(t.Annotations)}
			continue
		}
		one := *t
		if one.Annotations = gravestAnnotations(known.gravest, t.Annotations); ok {
			known.gravest = withoutTitle(one.Annotations)
			tools[name] = known
		}
		merged[i] = &one
	}
	return merged
}

// withoutTitle returns annotations without their text.
func withoutTitle(a *sdk.ToolAnnotations) *sdk.ToolAnnotations {
	if a == nil {
		return nil
	}
	hints := *a
	hints.Title = ""
	return &hints
}

// isChanged reports whether a tool has another definition than when it was seen for the first time, or may have because
// it is not remembered.
func (s *Seen) isChanged(server, name, definition string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.tools[server][digestOf(name)]
	if !ok {
		return len(s.tools[server]) >= mostSeen
	}
	return known.first != digestOf(definition)
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

// gravestAnnotations returns the graver one of each of two tools' annotations. Without annotations nothing is known to
// be harmless.
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
	g.ReadOnlyHint = a.ReadOnlyHint && b.ReadOnlyHint
	g.IdempotentHint = a.IdempotentHint && b.IdempotentHint
	g.DestructiveHint, g.OpenWorldHint = either(a.DestructiveHint, b.DestructiveHint), either(a.OpenWorldHint, b.OpenWorldHint)
	return &g
}
