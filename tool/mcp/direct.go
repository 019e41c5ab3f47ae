package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/internal/base/toolschema"
	"raddle.dev/tool"
)

// longestName is the length in bytes that every provider accepts for the name of a function.
const longestName = 64

// A ToolError is a tool that is not offered under its own name, because no provider accepts its schema. The model can
// still call it through the functions for its server.
type ToolError struct {
	Server string // the id of its server
	Tool   string // its name, free of secrets
	Err    error  // why, as the end of a sentence about its schema; free of secrets
}

func (e *ToolError) Error() string {
	return fmt.Sprintf("MCP server '%s': its tool %s is not offered under its own name, because its schema %v; mcp_invoke_%s still calls it", e.Server, e.Tool, e.Err, e.Server)
}

// Unwrap returns the cause.
func (e *ToolError) Unwrap() error { return e.Err }

// directTools returns the tools of a server under their own names, and a *ToolError for each one whose schema no
// provider accepts.
func (s *server) directTools(list []*sdk.Tool) (all []tool.Tool, left []error) {
	for i, name := range s.directNames(list) {
		t := list[i]
		repaired, err := toolschema.Repair(originalSchema(t))
		if err != nil {
			left = append(left, &ToolError{Server: s.config.ID, Tool: s.redactText(t.Name), Err: errors.New(s.redactText(err.Error()))})
			continue
		}
		schema, names := toolschema.SafeNames(repaired.Schema)
		effect := toolEffect(t)
		all = append(all, tool.Tool{
			Name: name, Description: s.redactText(repaired.AddNote(t.Description)), Schema: schema,
			Effect: effect, Parallel: effect == tool.ReadOnly, InDoubt: s.config.InDoubt,
			Touches: func(args json.RawMessage) (tool.Touch, error) {
				args = names.RestoreNames(args)
				return s.toolTouches(t, args), checkArguments(t, args)
			},
			Run: func(ctx context.Context, c tool.Call) (tool.Result, error) {
				args, ok := parseObject(c.Args)
				if !ok {
					return tool.FailedResult("the arguments of %s are not an object", name), nil
				}
				args = names.RestoreNames(args)
				if err := checkArguments(t, args); err != nil {
					return tool.FailedResult("%v", err), nil
				}
				res, err := s.callTool(ctx, request{Call: c, name: t.Name, arguments: args, repeats: effect.MayRepeat()})
				if err != nil {
					return tool.Result{}, err
				}
				return s.redactResult(messageResult(res)), nil
			},
		})
	}
	return all, left
}

// checkArguments returns why arguments do not match the schema of a tool as its server wrote it, or nil.
func checkArguments(t *sdk.Tool, args json.RawMessage) error {
	if err := toolschema.CheckArguments(originalSchema(t), args); err != nil {
		return fmt.Errorf("the arguments of %s do not match its schema: %w", t.Name, err)
	}
	return nil
}

// directNames returns the names under which tools of the server are offered directly. Rules use
// these names also for tools that are not.
func (s *server) directNames(list []*sdk.Tool) []string {
	names := make([]string, len(list))
	taken := map[string]bool{}
	for i, t := range list {
		names[i] = safeName("mcp__"+s.config.ID+"__"+t.Name, false)
		if taken[names[i]] {
			names[i] = safeName("mcp__"+s.config.ID+"__"+t.Name, true)
		}
		taken[names[i]] = true
	}
	return names
}

// functionName returns the name of a function of raddle for a server, such as mcp_invoke_ID.
func functionName(function, id string) string { return safeName("mcp_"+function+"_"+id, false) }

// safeName replaces the characters of a name that providers refuse. A digest distinguishes names
// that are marked or were shortened.
func safeName(name string, marked bool) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if len(safe) <= longestName && !marked {
		return safe
	}
	sum := sha256.Sum256([]byte(name))
	mark := "_" + hex.EncodeToString(sum[:4])
	return safe[:min(len(safe), longestName-len(mark))] + mark
}

// originalSchema returns the schema of a tool's arguments as its server wrote it.
func originalSchema(t *sdk.Tool) json.RawMessage {
	text, err := json.Marshal(t.InputSchema)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return text
}

// toolEffect returns the effect that the server declares. A tool without destructiveHint does not
// count as dangerous, although that is the default of the protocol.
func toolEffect(t *sdk.Tool) tool.Effect {
	a := t.Annotations
	switch {
	case a == nil:
		return tool.Undeclared
	case a.ReadOnlyHint:
		return tool.ReadOnly
	case a.DestructiveHint != nil && *a.DestructiveHint:
		return tool.Dangerous
	case a.IdempotentHint:
		return tool.Idempotent
	}
	return tool.Undeclared
}

// invokeEffect returns the effect of mcp_invoke, which may call any of the tools: it may be
// repeated only if every tool may. The tool that a call names decides whether the call needs consent.
func invokeEffect(list []*sdk.Tool) tool.Effect {
	all := tool.ReadOnly
	for _, t := range list {
		switch e := toolEffect(t); {
		case !e.MayRepeat():
			return tool.Undeclared
		case e == tool.Idempotent:
			all = e
		}
	}
	return all
}
