package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/tool"
)

// longestName is the length in bytes that every provider accepts for the name of a function.
const longestName = 64

// directTools returns the tools of a server under their own names. A tool whose schema no provider would accept is left out, and is an error
// that names it: a provider refuses a whole request because of one schema.
func (s *server) directTools(list []*sdk.Tool) (all []tool.Tool, faults []error) {
	for i, name := range s.directNames(list) {
		t := list[i]
		schema, err := tool.RepairSchema(inputSchema(t))
		if err != nil {
			faults = append(faults, &ToolError{Server: s.config.ID, Tool: s.redactText(t.Name), Err: errors.New(s.redactText(err.Error()))})
			continue
		}
		effect := toolEffect(t)
		all = append(all, tool.Tool{
			Name: name, Description: s.redactText(t.Description), Schema: schema,
			Effect: effect, Parallel: effect == tool.ReadOnly,
			InDoubt: s.config.InDoubt, Touches: func(args json.RawMessage) (tool.Touch, error) { return s.toolTouches(t, args), nil },
			Run: func(ctx context.Context, c tool.Call) (tool.Result, error) {
				args, ok := parseObject(c.Args)
				if !ok {
					return tool.FailedResult("the arguments of %s are not an object", name), nil
				}
				res, err := s.callTool(ctx, request{Call: c, name: t.Name, arguments: args, repeats: effect.MayRepeat()})
				if err != nil {
					return tool.Result{}, err
				}
				return s.redactResult(messageResult(res)), nil
			},
		})
	}
	return all, faults
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

// inputSchema returns the schema of a tool's arguments as its server has written it; nil if that is no schema, such as the list that some
// servers write for no arguments.
func inputSchema(t *sdk.Tool) json.RawMessage {
	if _, is := t.InputSchema.(map[string]any); !is {
		return nil
	}
	text, err := json.Marshal(t.InputSchema)
	if err != nil {
		return nil // it came as JSON
	}
	return text
}

// shownSchema returns the schema of a tool's arguments for a model that reads it.
func shownSchema(t *sdk.Tool) json.RawMessage {
	schema := inputSchema(t)
	if repaired, err := tool.RepairSchema(schema); err == nil {
		return repaired
	}
	return schema
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
