package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/flow/spec"
	"raddle.dev/server"
)

// A bridge connects a service with one server of the SDK, which has all sessions.
type bridge struct {
	service *server.Service
	sdk     *sdk.Server
	log     *slog.Logger

	mu     sync.Mutex // guards listed; one refresh at a time
	listed map[string]listedTool
}

// A listedTool is a tool that the server has.
type listedTool struct {
	definition string // as JSON, to see whether it has changed
	agent      agentTool
}

// An agentTool is an agent as a tool.
type agentTool struct {
	name      string // of the agent
	graph     bool
	variables map[string]string // names of variables by the arguments that set them
}

// promptArgument is the argument that is not a variable.
const promptArgument = "prompt"

// refreshTools is a middleware that compares the tools with the catalogue before they are listed, and before a tool is
// called that is not known: agents may come and go while the server runs.
func (b *bridge) refreshTools(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch method {
		case "tools/list":
			b.syncTools()
		case "tools/call":
			if params, ok := req.GetParams().(*sdk.CallToolParamsRaw); ok && params.Name != answerTool && !b.hasTool(params.Name) {
				b.syncTools()
			}
		}
		return next(ctx, method, req)
	}
}

func (b *bridge) hasTool(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.listed[name]
	return ok
}

// syncTools gives the server a tool for each agent of the catalogue that can be loaded.
func (b *bridge) syncTools() {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := map[string]bool{answerTool: true}
	for _, info := range b.service.ListAgents() {
		if info.Error != "" {
			b.log.Warn("an agent is no tool, because it cannot be loaded", "agent", info.Name, "error", info.Error)
			continue
		}
		definition, agent := newAgentTool(&info, nameTool(info.Name, found))
		found[definition.Name] = true
		text, err := json.Marshal(definition)
		if err != nil {
			b.log.Warn("an agent is no tool", "agent", info.Name, "error", err)
			continue
		}
		listed := listedTool{definition: string(text) + info.Name, agent: agent}
		if b.listed[definition.Name].definition != listed.definition {
			b.listed[definition.Name] = listed
			b.sdk.AddTool(definition, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return b.callAgent(ctx, req, agent)
			})
		}
	}
	for name := range b.listed {
		if !found[name] {
			delete(b.listed, name)
			b.sdk.RemoveTools(name)
		}
	}
}

// maxName is the length of a tool's name that all known clients accept.
const maxName = 64

// nameTool returns the name of an agent in the letters of tools. It is none of those that are taken.
func nameTool(agent string, taken map[string]bool) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, agent)
	name = name[:min(len(name), maxName)]
	for n := 2; taken[name]; n++ {
		suffix := "_" + strconv.Itoa(n)
		name = name[:min(len(name), maxName-len(suffix))] + suffix
	}
	return name
}

// newAgentTool describes an agent as a tool.
func newAgentTool(info *server.AgentInfo, name string) (*sdk.Tool, agentTool) {
	t := agentTool{name: info.Name, graph: info.IsGraph(), variables: map[string]string{}}
	prompt := map[string]any{"type": "string", "description": "what the agent shall do"}
	if len(info.Starters) > 0 {
		prompt["examples"] = info.Starters
	}
	properties := map[string]any{promptArgument: prompt}
	required := []string{}
	if t.graph {
		prompt["description"] = "the input of the graph; it may have one of its own"
	} else {
		required = append(required, promptArgument)
	}
	for _, v := range info.Variables {
		argument := nameArgument(v, properties)
		t.variables[argument] = v.Name
		property := map[string]any{"type": "string"}
		if v.Description != "" {
			property["description"] = v.Description
		}
		if v.Default != nil {
			property["default"] = *v.Default
		} else {
			required = append(required, argument)
		}
		properties[argument] = property
	}
	input := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		input["required"] = required
	}
	description := cmp.Or(info.Description, "The agent "+info.Name+" of raddle.")
	return &sdk.Tool{Name: name, Description: description, InputSchema: input, OutputSchema: resultSchema}, t
}

// nameArgument returns the name of the argument for a variable: its own, unless that is taken.
func nameArgument(v spec.Variable, taken map[string]any) string {
	name := v.Name
	for taken[name] != nil {
		name = "variable_" + name
	}
	return name
}
