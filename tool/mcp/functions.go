package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/tool"
)

const (
	defaultHits = 8 // tools that a search returns if the model does not say how many
	maxHits     = 20
)

// buildTools returns the tools of a server: the functions of raddle for it, then each of its own
// tools if it has few. The errors are those of tools that are left out.
func (s *server) buildTools(c *connection) (all []tool.Tool, left []error) {
	list := c.currentTools()
	all = append(s.commonTools(s.serverInstructions(c), invokeEffect(list)), s.readerTools(c)...)
	if len(list) <= s.options.Direct {
		direct, failed := s.directTools(list)
		all = append(all, direct...)
		left = failed
	}
	return all, left
}

// commonTools returns the functions of raddle for a server, which also one that is still starting has: their calls wait
// for it. The effect is that of a call of any of its tools.
func (s *server) commonTools(instructions string, effect tool.Effect) []tool.Tool {
	id := s.config.ID
	return []tool.Tool{
		{
			Name: functionName("invoke", id),
			Description: fmt.Sprintf("Calls a tool of the MCP server %s with its arguments. "+
				"Ask mcp_describe_%s first what arguments the tool takes.", id, id) + instructions,
			Schema: json.RawMessage(`{"type":"object","properties":{` +
				`"tool":{"type":"string","description":"The name of the tool"},` +
				`"arguments":{"type":"object","description":"The arguments of the tool"}},"required":["tool"]}`),
			Effect: effect, Parallel: effect == tool.ReadOnly,
			InDoubt: s.config.InDoubt, Repeats: s.invokeRepeats, Touches: s.invokeTouches, Run: s.invokeTool,
		},
		{
			Name:        functionName("search", id),
			Description: fmt.Sprintf("Searches the tools of the MCP server %s and returns the names and descriptions of those that fit best.", id),
			Schema: json.RawMessage(`{"type":"object","properties":{` +
				`"query":{"type":"string","description":"What the tool should do"},` +
				`"top_k":{"type":"integer","default":8,"description":"How many tools to return, at most 20"}},"required":["query"]}`),
			Effect: tool.ReadOnly, Parallel: true, Run: s.searchTools,
		},
		{
			Name:        functionName("describe", id),
			Description: fmt.Sprintf("Returns the full schema of the arguments of one tool of the MCP server %s.", id),
			Schema: json.RawMessage(`{"type":"object","properties":{` +
				`"tool":{"type":"string","description":"The name of the tool"}},"required":["tool"]}`),
			Effect: tool.ReadOnly, Parallel: true, Run: s.describeTool,
		},
	}
}

func (s *server) searchTools(ctx context.Context, c tool.Call) (tool.Result, error) {
	args := parseArguments(c.Args)
	query, failed := args.textField("query")
	if failed != nil {
		return *failed, nil
	}
	most := defaultHits
	if v, ok := args["top_k"]; ok {
		var n float64
		if json.Unmarshal(v, &n) != nil || n < 0 || n != math.Trunc(n) {
			return tool.FailedResult("Invalid 'top_k' in arguments"), nil
		}
		most = int(min(n, maxHits))
	}
	conn, err := s.connectWithTools(ctx)
	if err != nil {
		return tool.Result{}, s.wrapError(ctx, err)
	}
	hits := rankTools(s.config.ID, conn.currentTools(), query, most)
	for i := range hits {
		hits[i].Description = s.redactText(hits[i].Description)
	}
	return tool.JSONResult(hits), nil
}

func (s *server) describeTool(ctx context.Context, c tool.Call) (tool.Result, error) {
	name, failed := parseArguments(c.Args).textField("tool")
	if failed != nil {
		return *failed, nil
	}
	t, failed, err := s.findTool(ctx, name)
	if failed != nil || err != nil {
		return derefResult(failed), err
	}
	type property struct {
		Type string `json:"type"`
	}
	return s.redactResult(tool.JSONResult(struct {
		Type       string `json:"type"`
		Properties struct {
			Tool      property        `json:"tool"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"properties"`
	}{"object", struct {
		Tool      property        `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}{property{"string"}, describedSchema(t)}})), nil
}

// describedSchema returns the schema of a tool's arguments as the model reads it in a result: as the server wrote it,
// but always that of an object.
func describedSchema(t *sdk.Tool) json.RawMessage {
	schema, ok := t.InputSchema.(map[string]any)
	if !ok {
		return json.RawMessage(`{"type":"object"}`)
	}
	if schema["type"] != "object" {
		schema = maps.Clone(schema)
		schema["type"] = "object"
	}
	return originalSchema(&sdk.Tool{InputSchema: schema})
}

func (s *server) invokeTool(ctx context.Context, c tool.Call) (tool.Result, error) {
	args := parseArguments(c.Args)
	name, failed := args.textField("tool")
	if failed != nil {
		return *failed, nil
	}
	with, ok := parseObject(args["arguments"])
	if !ok {
		return tool.FailedResult("Invalid 'arguments' in arguments"), nil
	}
	t, failed, err := s.findTool(ctx, name)
	if failed != nil || err != nil {
		return derefResult(failed), err
	}
	if err := checkArguments(t, with); err != nil {
		return tool.FailedResult("%v", err), nil
	}
	res, err := s.callTool(ctx, request{Call: c, name: t.Name, arguments: with, repeats: toolEffect(t).MayRepeat()})
	if err != nil {
		return tool.Result{}, err
	}
	return s.redactResult(rawResult(res)), nil
}

// findTool looks a tool up in the list of the server.
func (s *server) findTool(ctx context.Context, name string) (*sdk.Tool, *tool.Result, error) {
	c, err := s.connectWithTools(ctx)
	if err != nil {
		return nil, nil, s.wrapError(ctx, err)
	}
	list := c.currentTools()
	i := slices.IndexFunc(list, func(t *sdk.Tool) bool { return t.Name == name })
	if i < 0 {
		text := fmt.Sprintf("%s not found in %s MCP server catalog", name, s.config.ID)
		if near := nearNames(name, list); len(near) > 0 {
			text += ". Near it: " + strings.Join(near, ", ")
		}
		unknown := tool.FailedResult("%s", text)
		return nil, &unknown, nil
	}
	return list[i], nil, nil
}

// nearNames returns the names of a few tools that are most similar to a wrong name: their words
// begin with the same letters.
func nearNames(wrong string, list []*sdk.Tool) []string {
	const few, least = 3, 3
	words := func(name string) []string {
		return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' || r == ' ' })
	}
	type near struct {
		name  string
		score int
	}
	var found []near
	for _, t := range list {
		score := 0
		for _, w := range words(wrong) {
			for _, o := range words(t.Name) {
				if n := sharedStart(w, o); n >= min(least, len(w), len(o)) {
					score += n
				}
			}
		}
		if score >= least {
			found = append(found, near{t.Name, score})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int { return b.score - a.score })
	var names []string
	for _, n := range found[:min(few, len(found))] {
		names = append(names, n.name)
	}
	return names
}

// sharedStart returns the length in bytes of the longest common prefix of two words.
func sharedStart(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func derefResult(r *tool.Result) tool.Result {
	if r == nil {
		return tool.Result{}
	}
	return *r
}

// arguments holds the fields of a call's arguments.
type arguments map[string]json.RawMessage

func parseArguments(args json.RawMessage) arguments {
	var m arguments
	_ = json.Unmarshal(args, &m) // any other value than an object has no fields
	return m
}

// textField returns the text of a required field, or the failure for the model.
func (a arguments) textField(name string) (string, *tool.Result) {
	v, ok := a[name]
	if !ok {
		r := tool.FailedResult("Missing '%s' in arguments", name)
		return "", &r
	}
	var s *string
	if json.Unmarshal(v, &s) != nil || s == nil {
		r := tool.FailedResult("Invalid '%s' in arguments", name)
		return "", &r
	}
	return *s, nil
}

// parseObject returns an object as it was written. An absent value and null are an empty object.
// Some models write a string that holds an object: it counts as that object.
func parseObject(v json.RawMessage) (json.RawMessage, bool) {
	var text string
	if json.Unmarshal(v, &text) == nil && text != "" {
		v = json.RawMessage(text)
	}
	if len(v) == 0 || string(v) == "null" || string(v) == `""` {
		return json.RawMessage(`{}`), true
	}
	var m map[string]json.RawMessage
	return v, json.Unmarshal(v, &m) == nil
}
