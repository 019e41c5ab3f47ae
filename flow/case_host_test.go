package flow

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/llm"
)

// This file plays the surroundings of a conformance case: the person, the models,
// agents that are no graphs, and the log.

// host is the surroundings that the case asks for.
func (r *caseRun) host() Host {
	c := r.c
	k := c.known(r.dir)
	h := Host{Models: caseModels{r, k.Model}, Depth: intOf(c.Host, "depth"), Bounds: Bounds{NoSpawn: !flagOf(c.Host, "function_calling", true)},
		Tooling: Tooling{Box: caseTools{r, k}}, Headless: flagOf(c.Host, "headless", false), Retrieval: r.retrieval(), Skills: HostSkills{Installed: k.Skills}, Log: slog.New(r.log), Child: r.child, Session: textOf(c.Host, "session"),
		Workspace: filepath.Join(filepath.Dir(r.dir), "cwd"), Variables: map[string]string{}}
	if models, ok := c.Host.Get("models"); ok {
		h.Model = models.([]any)[0].(string)
	} else {
		h.Model = "fake:main"
	}
	vars, _ := c.Host.Get("variables")
	if o, ok := vars.(*jsonvalue.Object); ok {
		for name, v := range o.All() {
			h.Variables[name] = fmt.Sprint(v)
		}
	}
	env, _ := c.Host.Get("env")
	h.Env = os.Environ()
	if o, ok := env.(*jsonvalue.Object); ok {
		for name, v := range o.All() {
			h.Env = append(h.Env, name+"="+fmt.Sprint(v))
		}
	}
	return h
}

// answer is what the person, or the root above this agent, does.
func (r *caseRun) answer(q graph.Question) graph.Answer {
	r.t.Helper()
	if up, ok := r.c.Host.Get("escalation"); ok && intOf(r.c.Host, "depth") > 0 {
		return r.escalated(q, up.(*jsonvalue.Object))
	}
	if !flagOf(r.c.Host, "tty", true) {
		return graph.Answer{ID: q.ID, Refused: "no terminal"}
	}
	if len(r.people) == 0 {
		r.t.Fatalf("no answer is left for %q", q.Prompt)
	}
	p := r.people[0]
	r.people = r.people[1:]
	if kind := textOf(p, "kind"); kind != q.Kind {
		r.t.Errorf("%s is asked as %s, want %s", q.Prompt, q.Kind, kind)
	}
	r.sameText(p, "question", q.Prompt)
	if want, ok := p.Get("options"); ok {
		if diff := cmp.Diff(texts(p, "options"), q.Options); diff != "" {
			r.t.Errorf("options %v:\n%s", want, diff)
		}
	}
	r.sameText(p, "default", q.Default)
	if flagOf(p, "cancel", false) {
		return graph.Answer{ID: q.ID, Refused: "cancelled"}
	}
	if text, ok := p.Get("custom"); ok {
		return graph.Answer{ID: q.ID, Value: text}
	}
	return graph.Answer{ID: q.ID, Value: textOf(p, "answer")}
}

func (r *caseRun) escalated(q graph.Question, up *jsonvalue.Object) graph.Answer {
	tag := map[string]string{"select": "[ask] ", "input": "[input] "}[q.Kind]
	r.sameText(up, "question", tag+q.Prompt)
	switch outcome := textOf(up, "outcome"); outcome {
	case "timeout":
		return graph.Answer{ID: q.ID, Refused: "Escalation timed out after 300 seconds waiting for user response"}
	case "dropped":
		return graph.Answer{ID: q.ID, Refused: "Escalation was cancelled. The parent agent dropped the request"}
	default:
		return graph.Answer{ID: q.ID, Value: outcome}
	}
}

func (r *caseRun) sameText(o *jsonvalue.Object, key, got string) {
	r.t.Helper()
	if want, ok := o.Get(key); ok && want != got {
		r.t.Errorf("%s is %q, want %q", key, got, want)
	}
}

// child plays the scripted runs of an agent that is no graph.
func (r *caseRun) child(ctx context.Context, s Spawn) (string, error) {
	r.mu.Lock()
	if len(r.stubs[s.Agent]) == 0 {
		r.mu.Unlock()
		return "", fmt.Errorf("agent %s has no scripted run left", s.Agent)
	}
	stub := r.stubs[s.Agent][0].(*jsonvalue.Object)
	r.stubs[s.Agent] = r.stubs[s.Agent][1:]
	r.sameText(stub, "expect_prompt", s.Prompt)
	r.mu.Unlock()
	if err := pause(ctx, stub); err != nil {
		return "", err
	}
	if text := textOf(stub, "error"); text != "" {
		return "", errors.New(text)
	}
	return textOf(stub, "reply"), nil
}

// pause waits as long as a script says.
func pause(ctx context.Context, o *jsonvalue.Object) error {
	select {
	case <-time.After(time.Duration(intOf(o, "delay_ms")) * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// caseModels are the models of a case: all of them read its script.
type caseModels struct {
	run   *caseRun
	known func(id string) bool
}

func (m caseModels) IsKnown(_, id string) bool { return m.known(id) }

func (m caseModels) Open(_ context.Context, _, id string) (llm.Model, error) {
	return caseModel{m.run, id}, nil
}

func (m caseModels) Facts(_, id string) ModelFacts {
	levels, _ := m.run.c.Host.Get("reasoning_levels")
	o, _ := levels.(*jsonvalue.Object)
	return ModelFacts{Efforts: append([]string{}, texts(o, id)...)}
}

type caseModel struct {
	run *caseRun
	id  string
}

// Stream takes the first unused reply that matches.
func (m caseModel) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		reply, err := m.run.reply(m.id, req)
		if err == nil {
			err = pause(ctx, reply)
		}
		if text := textOf(reply, "error"); err == nil && text != "" {
			err = errors.New(text)
		}
		if err != nil {
			yield(llm.Delta{}, err)
			return
		}
		yield(llm.Delta{Done: &llm.Reply{Message: said(reply, len(req.Messages))}}, nil)
	}
}

func (r *caseRun) reply(model string, req llm.Request) (*jsonvalue.Object, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	user := req.Messages[0].Text()
	r.calls = append(r.calls, jsonvalue.NewObject(jsonvalue.Member{Key: "user", Value: user}, jsonvalue.Member{Key: "system", Value: req.System}, jsonvalue.Member{Key: "model", Value: model}))
	for _, s := range r.script {
		if s.used > 0 && !flagOf(s.Object, "repeat", false) {
			continue
		}
		if slices.ContainsFunc(texts(s.Object, "match"), func(m string) bool { return !strings.Contains(req.System+"\n"+user, m) }) {
			continue
		}
		s.used++
		r.checkRequest(s.Object, model, user, req)
		return s.Object, nil
	}
	r.t.Errorf("no scripted reply for %q", user)
	return nil, errors.New("no scripted reply")
}

// checkRequest compares a request with what its reply expects of it.
func (r *caseRun) checkRequest(s *jsonvalue.Object, model, user string, req llm.Request) {
	r.sameText(s, "expect_user", user)
	r.sameText(s, "expect_model", model)
	if want, ok := s.Get("expect_system"); ok {
		if want == nil {
			want = ""
		}
		if want != req.System {
			r.t.Errorf("system prompt %q, want %q", req.System, want)
		}
	}
	for _, part := range texts(s, "expect_user_contains") {
		if !strings.Contains(user, part) {
			r.t.Errorf("the prompt %q lacks %q", user, part)
		}
	}
	for _, part := range texts(s, "expect_user_not_contains") {
		if strings.Contains(user, part) {
			r.t.Errorf("the prompt %q has %q", user, part)
		}
	}
	for _, part := range texts(s, "expect_system_not_contains") {
		if strings.Contains(req.System, part) {
			r.t.Errorf("the system prompt %q has %q", req.System, part)
		}
	}
	if want, ok := s.Get("expect_messages"); ok && want != int64(len(req.Messages)) {
		r.t.Errorf("%d messages, want %v", len(req.Messages), want)
	}
	for key, got := range map[string]*float64{"expect_temperature": req.Temperature, "expect_top_p": req.TopP} {
		want, ok := s.Get(key)
		switch f, number := jsonvalue.AsFloat(want); {
		case !ok:
		case !number && got != nil, number && (got == nil || *got != f):
			r.t.Errorf("%s: want %v", key, want)
		}
	}
	r.checkTools(s, req)
}

// recordedLog is a slog.Handler that keeps its lines as "level text".
type recordedLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *recordedLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *recordedLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *recordedLog) WithGroup(string) slog.Handler            { return l }

func (l *recordedLog) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	level := strings.ToLower(r.Level.String())
	if r.Level < slog.LevelDebug {
		level = "trace"
	}
	l.lines = append(l.lines, level+" "+r.Message)
	return nil
}
