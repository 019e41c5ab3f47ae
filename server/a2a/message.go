package a2a

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"raddle.dev/graph"
	"raddle.dev/internal/storage/attach"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/server"
)

// takeMessage starts a run with a message, or continues the run of its task. after is the position of the last event
// before that.
func (t *tasks) takeMessage(ctx context.Context, req *a2a.SendMessageRequest) (run, after string, err error) {
	m := req.Message
	if m == nil || len(m.Parts) == 0 {
		return "", "", a2a.NewError(a2a.ErrInvalidParams, "the message has no parts")
	}
	files, err := readFiles(m.Parts)
	if err != nil {
		return "", "", err
	}
	if m.TaskID != "" && len(files) > 0 {
		return "", "", a2a.NewError(a2a.ErrUnsupportedContentType, "a message to a task answers its question with text or data: nothing can be attached to it")
	}
	if m.TaskID != "" {
		return t.continueTask(ctx, m)
	}
	// ScopeRead is for the answer, which is the task.
	if err := server.RequireScopes(ctx, t.service, server.ScopeStart, server.ScopeRead); err != nil {
		return "", "", err
	}
	prompt, err := joinParts(m.Parts)
	if err != nil {
		return "", "", err
	}
	start := server.StartRequest{Via: "a2a", Agent: t.agent.Name, Prompt: prompt, Files: files, Variables: variablesOf(m.Metadata)}
	if !t.agent.IsGraph() {
		if m.ContextID == "" {
			m.ContextID = newContext()
		}
		if start.Session, err = sessionOf(m.ContextID); err != nil {
			return "", "", err
		}
	}
	if start.Session != "" {
		if err := server.EndFailedTurn(ctx, t.service, start.Agent, start.Session); err != nil {
			return "", "", err
		}
	}
	if run, err = t.service.StartRun(ctx, start); err != nil {
		return "", "", err
	}
	if t.agent.IsGraph() && m.ContextID != "" {
		err = t.contexts.saveContext(ctx, run, m.ContextID)
	}
	return run, "", err
}

// readFiles returns the pictures, documents and texts that are attached to a message by their bytes. Nothing is fetched
// from an address.
func readFiles(parts a2a.ContentParts) (files []attach.File, err error) {
	for _, p := range parts {
		switch content := p.Content.(type) {
		case a2a.Text, a2a.Data:
		case a2a.Raw:
			name := cmp.Or(p.Filename, fmt.Sprintf("attachment %d", len(files)+1))
			f, err := attach.NewDeclared(name, p.MediaType, content, attach.MaxText)
			if err != nil {
				return nil, a2a.NewError(a2a.ErrUnsupportedContentType, attach.Explain(err))
			}
			files = append(files, f)
		default:
			return nil, a2a.NewError(a2a.ErrUnsupportedContentType, "text, data and raw content are accepted: nothing is fetched from an address")
		}
	}
	return files, nil
}

// joinParts returns the text of a message. Data is its JSON.
func joinParts(parts a2a.ContentParts) (string, error) {
	var texts []string
	for _, p := range parts {
		if data, ok := p.Content.(a2a.Data); ok {
			b, err := json.Marshal(data.Value)
			if err != nil {
				return "", err
			}
			texts = append(texts, string(b))
			continue
		}
		if _, attached := p.Content.(a2a.Raw); attached {
			continue
		}
		texts = append(texts, p.Text())
	}
	return strings.Join(texts, "\n\n"), nil
}

// variablesOf returns the texts in the member variables of a message's metadata: values for the agent's variables.
func variablesOf(meta map[string]any) map[string]string {
	given, _ := meta["variables"].(map[string]any)
	if len(given) == 0 {
		return nil
	}
	variables := map[string]string{}
	for name, value := range given {
		variables[name] = fmt.Sprint(value)
	}
	return variables
}

// continueTask answers a question of a run, or continues a run that is paused.
func (t *tasks) continueTask(ctx context.Context, m *a2a.Message) (run, after string, err error) {
	st, err := t.findState(ctx, m.TaskID)
	if err != nil {
		return "", "", err
	}
	own, err := t.contexts.findContext(ctx, st.Run, st.Session)
	if err != nil {
		return "", "", err
	}
	if m.ContextID != "" && m.ContextID != own {
		return "", "", a2a.NewError(a2a.ErrInvalidParams, fmt.Sprintf("the task %s belongs to the context %q", st.Run, own))
	}
	after = st.Position()
	if len(st.Questions) > 0 && st.Status == graph.Waiting.String() {
		answers, err := answersOf(m.Parts, st.Questions)
		if err != nil {
			return "", "", err
		}
		_, err = t.service.AnswerRun(ctx, server.AnswerRequest{Run: st.Run, Answers: answers, Protocol: true})
		return st.Run, after, err
	}
	if runs.NeedsResume(st.Status) {
		return st.Run, after, t.service.ResumeRun(ctx, st.Run)
	}
	return "", "", a2a.NewError(a2a.ErrUnsupportedOperation, fmt.Sprintf("the task takes no message now: %s", st.Status))
}

// answersOf returns the answers that a message gives: to the questions that a data part names, as {"answers": {ID:
// VALUE}}, or to the oldest question, with the text or the data of the message.
func answersOf(parts a2a.ContentParts, open []graph.Question) ([]graph.Answer, error) {
	for _, p := range parts {
		object, _ := p.Data().(map[string]any)
		named, ok := object["answers"].(map[string]any)
		if !ok {
			continue
		}
		var answers []graph.Answer
		for i := range open {
			if value, given := named[open[i].ID]; given {
				delete(named, open[i].ID)
				answers = append(answers, graph.Answer{ID: open[i].ID, Value: value})
			}
		}
		for id := range named {
			return nil, a2a.NewError(a2a.ErrInvalidParams, fmt.Sprintf("the question %q is not open", id))
		}
		return answers, nil
	}
	q := &open[0]
	if len(parts) == 1 {
		if data, ok := parts[0].Content.(a2a.Data); ok {
			return []graph.Answer{{ID: q.ID, Value: data.Value}}, nil
		}
	}
	text, err := joinParts(parts)
	if err != nil {
		return nil, err
	}
	a := graph.Answer{ID: q.ID, Value: text}
	if q.Type != "" && q.Type != "string" {
		var value any
		if json.Unmarshal([]byte(text), &value) == nil {
			a.Value = value
		}
	}
	return []graph.Answer{a}, nil
}
