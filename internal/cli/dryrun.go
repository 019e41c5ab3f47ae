package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/internal/app"
	"raddle.dev/llm"
)

// dryReport describes what a run would send to models, for --dry-run.
type dryReport struct {
	Agent    string       `json:"agent"`
	Requests []dryRequest `json:"requests"` // for a graph, one for each llm node, with its placeholders
	Tools    []toolReport `json:"tools"`
	Servers  []string     `json:"mcp_servers"` // not started: Tools does not contain their tools
	Notes    []string     `json:"notes"`       // what is unknown before the run
	specs    []llm.ToolSpec
	config   bool
}

// dryRequest is one request to a model.
type dryRequest struct {
	Node     string        `json:"node,omitempty"`
	Model    string        `json:"model"`
	System   string        `json:"system"`
	Messages []llm.Message `json:"messages"`
	Tools    []string      `json:"tools"`
}

// dryRun describes what a run would send to models. It calls and records nothing.
func dryRun(env *environment, run *app.Run, format string) error {
	defer run.Close()
	r := dryReportOn(run.Agent, run.Record.Prompt)
	noteFindings(env, run.Agent)
	if format == formatStream {
		format = formatJSON
	}
	return env.printResult(format, r, r.String)
}

func dryReportOn(a *flow.Agent, prompt string) *dryReport {
	r := &dryReport{Agent: a.Name, Requests: []dryRequest{}, Tools: []toolReport{}, Servers: append([]string{}, a.Tools.Servers...), Notes: []string{}, config: a.Config != nil}
	names := []string{}
	for _, t := range a.AvailableTools() {
		r.Tools = append(r.Tools, toolReport{t.Name, firstLine(t.Description)})
		r.specs = append(r.specs, t.Spec())
		names = append(names, t.Name)
	}
	if a.Config != nil {
		system, messages := a.OpeningMessages(prompt)
		r.Requests = append(r.Requests, dryRequest{Model: firstOrEmpty(a.Models()), System: system, Messages: messages, Tools: names})
		if a.Config.Prompting.Dynamic {
			r.Notes = append(r.Notes, "the script's function _instructions makes the instructions, and was not run")
		}
	} else {
		r.Notes = append(r.Notes, "placeholders are filled when a node runs; which nodes run is decided then")
		for _, n := range a.ModelRequests() {
			r.Requests = append(r.Requests, dryNode(a, n))
		}
	}
	if len(r.Servers) > 0 {
		r.Notes = append(r.Notes, "the tools of MCP servers are unknown until the servers start: "+joinWords(r.Servers))
	}
	return r
}

func dryNode(a *flow.Agent, n flow.ModelRequest) dryRequest {
	q := dryRequest{Node: n.Node, Model: n.Model, System: n.System, Messages: []llm.Message{llm.User(n.Prompt)}, Tools: append([]string{}, n.Tools...)}
	if models := a.Models(); q.Model == "" || len(models) == 1 {
		q.Model = firstOrEmpty(models) // --model replaces all of them
	}
	return q
}

func firstOrEmpty(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// String returns the report for people.
func (r *dryReport) String() string {
	var b strings.Builder
	for i, q := range r.Requests {
		if i > 0 {
			b.WriteString("\n")
		}
		if q.Node != "" {
			fmt.Fprintf(&b, "node: %s\n", q.Node)
		}
		fmt.Fprintf(&b, "model: %s\n", q.Model)
		writeSection(&b, "system", q.System)
		for _, m := range q.Messages {
			writeSection(&b, string(m.Role), m.Text())
		}
		if !r.config {
			writeSection(&b, "tools", strings.Join(q.Tools, ", "))
		}
	}
	if r.config {
		for _, t := range r.specs {
			writeSection(&b, "tool "+t.Name, t.Description+"\n"+compactJSON(t.Schema))
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", n)
	}
	return b.String()
}

// writeSection returns a text below its heading, or "" for an empty text.
func writeSection(b *strings.Builder, title, text string) {
	if text = strings.TrimSpace(text); text != "" {
		fmt.Fprintf(b, "\n[%s]\n%s\n", title, plainText(text))
	}
}

func compactJSON(schema json.RawMessage) string {
	text, err := json.Marshal(schema)
	if err != nil || len(schema) == 0 {
		return "{}"
	}
	return string(text)
}
