package api

import (
	"context"
	"encoding/json"
	"net/http"

	"raddle.dev/graph"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/toolbox"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/server"
)

// A toolHandler has the operations on tools.
type toolHandler struct{ *handler }

// addTools adds the operations on tools.
func (h toolHandler) addTools() {
	add(h.handler, operation{http.MethodGet, "/tools", "list-tools", "List the tools that an agent may call, or every agent may name", server.ScopeRead, 0}, h.listTools)
	add(h.handler, operation{http.MethodPost, "/tools/{name}/call", "try-tool", "Call a tool once, outside of any run", server.ScopeStart, 0}, h.tryTool)
}

func (h toolHandler) listTools(_ context.Context, in *AgentQuery) (*body[*toolbox.ToolList], error) {
	if err := h.checkAgent(in.Agent); in.Agent != "" && err != nil {
		return nil, err
	}
	if err := h.checkName(in.Agent); err != nil {
		return nil, err
	}
	list, err := h.process.ListTools(app.LoadRequest{Agent: in.Agent})
	return &body[*toolbox.ToolList]{list}, err
}

type tryInput struct {
	Name string `path:"name" doc:"name of the tool"`
	Body struct {
		Agent     string          `json:"agent,omitempty" doc:"the tool is one that this agent may call; else it is one that every agent may name"`
		Arguments json.RawMessage `json:"arguments" doc:"an object"`
		Allow     string          `json:"allow,omitempty" doc:"id of the question that an earlier call with the same arguments returned: a person allows the call once. This needs the scope answer, too"`
	}
}

// Trial is the outcome of a call of a tool.
type Trial struct {
	Status   string          `json:"status" enum:"ok,failed,asks" doc:"asks: the call was not made, because a person must allow it"`
	Output   string          `json:"output,omitempty" doc:"what a model would read"`
	Question *graph.Question `json:"question,omitempty" doc:"what a person must allow"`
}

// tryTool calls a tool. It records nothing.
func (h toolHandler) tryTool(ctx context.Context, in *tryInput) (*body[Trial], error) {
	if err := h.checkName(in.Body.Agent); err != nil {
		return nil, err
	}
	if err := h.checkAgent(in.Body.Agent); in.Body.Agent != "" && err != nil {
		return nil, err
	}
	if in.Body.Allow != "" {
		if err := h.service.RequireScope(ctx, server.ScopeAnswer); err != nil {
			return nil, err
		}
	}
	var arguments map[string]json.RawMessage
	if err := json.Unmarshal(in.Body.Arguments, &arguments); err != nil || arguments == nil {
		return nil, newProblem(http.StatusBadRequest, "usage", "the arguments must be a JSON object")
	}
	list, err := h.process.ListTools(app.LoadRequest{Agent: in.Body.Agent})
	if err != nil {
		return nil, err
	}
	t, err := list.TryTool(ctx, runs.ToolCall{Tool: in.Name, Args: in.Body.Arguments}, in.Body.Allow)
	switch {
	case err != nil:
		return nil, err
	case t.Asks != nil:
		return &body[Trial]{Trial{Status: "asks", Question: t.Asks}}, nil
	case in.Body.Allow != "":
		server.NoteTrial(ctx, h.service, in.Body.Allow, in.Name+" "+string(in.Body.Arguments))
	}
	switch {
	case t.Failed:
		return &body[Trial]{Trial{Status: "failed", Output: t.Output}}, nil
	}
	return &body[Trial]{Trial{Status: "ok", Output: t.Output}}, nil
}
