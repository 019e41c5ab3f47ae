// Package dryrun describes what a run would send to models, for --dry-run.
package dryrun

import (
	"encoding/json"
	"fmt"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/internal/base/term"
	"raddle.dev/llm"
)

// A Tool is a tool that models may call.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description"` // its first line
}

// Report describes what a run would send to models, for --dry-run.
type Report struct {
	Agent    string    `json:"agent"`
	Requests []Request `json:"requests"` // for a graph, one for each llm node, with its placeholders
	Tools    []Tool    `json:"tools"`
	Servers  []string  `json:"mcp_servers"` // not started: Tools does not contain their tools
	Notes    []string  `json:"notes"`       // what is unknown before the run
	specs    []llm.ToolSpec
	config   bool
}

// Request is one request to a model.
type Request struct {
	Node     string        `json:"node,omitempty"`
	Model    string        `json:"model"`
	System   string        `json:"system"`
	Messages []llm.Message `json:"messages"`
	Tools    []string      `json:"tools"`
}

// DescribeRun describes what a run of an agent with a prompt would send.
func DescribeRun(a *flow.Agent, prompt string) *Report {
	r := &Report{Agent: a.Name, Requests: []Request{}, Tools: []Tool{}, Servers: append([]string{}, a.Tools.Servers...), Notes: []string{}, config: a.Config != nil}
	names := []string{}
	for _, t := range a.AvailableTools() {
		r.Tools = append(r.Tools, Tool{t.Name, cutLine(t.Description)})
		r.specs = append(r.specs, t.Spec())
		names = append(names, t.Name)
	}
	if a.Config != nil {
		system, messages := a.OpeningMessages(prompt)
		r.Requests = append(r.Requests, Request{Model: firstOf(a.Models()), System: system, Messages: messages, Tools: names})
		if a.Config.Prompting.Dynamic {
			r.Notes = append(r.Notes, "the script's function _instructions makes the instructions, and was not run")
		}
	} else {
		r.Notes = append(r.Notes, "placeholders are filled when a node runs; which nodes run is decided then")
		for _, n := range a.ModelRequests() {
			r.Requests = append(r.Requests, describeNode(a, n))
		}
	}
	if len(r.Servers) > 0 {
		r.Notes = append(r.Notes, "the tools of MCP servers are unknown until the servers start: "+strings.Join(r.Servers, ", "))
	}
	return r
}

// describeNode describes the request of an llm node.
func describeNode(a *flow.Agent, n flow.ModelRequest) Request {
	q := Request{Node: n.Node, Model: n.Model, System: n.System, Messages: []llm.Message{llm.User(n.Prompt)}, Tools: append([]string{}, n.Tools...)}
	if models := a.Models(); q.Model == "" || len(models) == 1 {
		q.Model = firstOf(models) // --model replaces all of them
	}
	return q
}

// String returns the report for people.
func (r *Report) String() string {
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
		fmt.Fprintf(b, "\n[%s]\n%s\n", title, term.CleanText(text))
	}
}

func compactJSON(schema json.RawMessage) string {
	text, err := json.Marshal(schema)
	if err != nil || len(schema) == 0 {
		return "{}"
	}
	return string(text)
}

// firstOf returns the first model of a list, or "".
func firstOf(models []string) string {
	if len(models) == 0 {
		return ""
	}
	return models[0]
}

// cutLine returns the first line of a text.
func cutLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return term.CleanText(line)
}
