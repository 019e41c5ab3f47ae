package mcp

import (
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/server"
)

// A runResult is what a tool returns as structured content.
type runResult struct {
	Run       string         `json:"run"`
	Status    string         `json:"status"`
	Output    string         `json:"output,omitempty"`
	ExitCode  int            `json:"exit_code,omitempty"`
	Questions []openQuestion `json:"questions,omitempty"`
	Error     string         `json:"error,omitempty"`
}

// An openQuestion is a question that has no answer yet.
type openQuestion struct {
	ID      string   `json:"id"`
	Kind    string   `json:"kind,omitempty"`
	Prompt  string   `json:"prompt"`
	Options []string `json:"options,omitempty"`
	Free    bool     `json:"free,omitempty"`
	Default string   `json:"default,omitempty"`
	Type    string   `json:"type,omitempty"`
}

// resultSchema is the schema of a runResult.
var resultSchema = map[string]any{
	"type":     "object",
	"required": []string{"run", "status"},
	"properties": map[string]any{
		"run":       map[string]any{"type": "string", "description": "id of the run"},
		"status":    map[string]any{"type": "string", "description": "done, waiting, paused, failed, abandoned, …"},
		"output":    map[string]any{"type": "string"},
		"exit_code": map[string]any{"type": "integer", "description": "of a graph; 0: success"},
		"error":     map[string]any{"type": "string"},
		"questions": map[string]any{
			"type":        "array",
			"description": "what the run waits for; answer with " + answerTool,
			"items": map[string]any{
				"type":     "object",
				"required": []string{"id", "prompt"},
				"properties": map[string]any{
					"id":      map[string]any{"type": "string"},
					"kind":    map[string]any{"type": "string"},
					"prompt":  map[string]any{"type": "string"},
					"options": map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
					"free":    map[string]any{"type": "boolean", "description": "answers other than the options are accepted"},
					"default": map[string]any{"type": "string"},
					"type":    map[string]any{"type": "string", "description": "JSON type of the answer"},
				},
			},
		},
	},
}

// describeRun returns the state of a run as the result of a tool. note is added to the text of a run that waits.
func (b *bridge) describeRun(st *server.RunState, note string) *sdk.CallToolResult {
	r := runResult{Run: st.Run, Status: st.Status, Output: b.redact(st.Output), ExitCode: st.ExitCode, Error: b.redact(st.Error)}
	waits := len(st.Questions) > 0 && !st.Final
	res := &sdk.CallToolResult{}
	text := r.Output
	switch {
	case waits:
		r.Status = graph.Waiting.String()
		for i := range st.Questions {
			r.Questions = append(r.Questions, b.describeQuestion(&st.Questions[i]))
		}
		text = explainQuestions(&r, note)
	case st.Status == graph.Done.String():
	case runs.IsWorking(st.Status):
		text = fmt.Sprintf("run %s is %s", r.Run, r.Status)
	default:
		res.IsError = true
		text = fmt.Sprintf("run %s is %s", r.Run, r.Status)
		if r.Error != "" {
			text += ": " + r.Error
		}
		if !st.Final {
			text += "\nTo continue it: raddle resume " + r.Run
		}
	}
	res.Content = []sdk.Content{&sdk.TextContent{Text: text}}
	res.StructuredContent = r
	return res
}

func (b *bridge) describeQuestion(q *graph.Question) openQuestion {
	o := openQuestion{ID: q.ID, Kind: q.Kind, Prompt: b.redact(q.Prompt), Options: q.Options, Free: q.Free, Default: q.Default, Type: q.Type}
	if isPermission(q) {
		o.Options = []string{answerOnce, answerNo}
	}
	if q.Rejected != "" {
		o.Prompt += "\n\n" + b.redact(q.Rejected)
	}
	return o
}

// explainQuestions says in words what a run waits for.
func explainQuestions(r *runResult, note string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "Run %s waits for an answer.\n", r.Run)
	if note != "" {
		text.WriteString(note + "\n")
	}
	for _, q := range r.Questions {
		fmt.Fprintf(&text, "\nQuestion %s: %s\n", q.ID, q.Prompt)
		if len(q.Options) > 0 {
			fmt.Fprintf(&text, "Answers: %s\n", strings.Join(q.Options, ", "))
		}
	}
	fmt.Fprintf(&text, "\nAsk the user, then call %s with run %q, the id of the question, and the answer.", answerTool, r.Run)
	return text.String()
}

// failCall returns an error as the result of a tool. run is "" if none was started.
func (b *bridge) failCall(run string, err error) *sdk.CallToolResult {
	text := server.HidePaths(b.redact(err.Error()), b.service)
	if f, ok := errors.AsType[*failure.Error](err); ok && f.Next != "" {
		text += "\n" + server.HidePaths(b.redact(f.Next), b.service)
	}
	res := &sdk.CallToolResult{IsError: true}
	if run != "" {
		text += "\nrun: " + run
		res.StructuredContent = runResult{Run: run, Status: "error", Error: text}
	}
	res.Content = []sdk.Content{&sdk.TextContent{Text: text}}
	return res
}

// redact removes the secrets that the process knows from a text.
func (b *bridge) redact(text string) string {
	return b.service.Process().Tools.SecretSet().Text(text)
}
