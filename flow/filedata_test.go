package flow

import (
	"strconv"
	"strings"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/jsonvalue"
	"raddle.dev/internal/strictyaml"
)

// fileData is a parsed file as data under the names of its fields, with unset
// optional fields as null.
func fileData(f *spec.File) *jsonvalue.Object {
	o := jsonvalue.NewObject(
		jsonvalue.Member{Key: "name", Value: f.Name}, jsonvalue.Member{Key: "description", Value: f.Description}, jsonvalue.Member{Key: "version", Value: f.Version},
		jsonvalue.Member{Key: "model", Value: maybe(f.Model)}, jsonvalue.Member{Key: "temperature", Value: number(f.Temperature)}, jsonvalue.Member{Key: "top_p", Value: number(f.TopP)},
		jsonvalue.Member{Key: "reasoning_effort", Value: maybe(f.ReasoningEffort)},
	)
	addPatience(o, f.Patience)
	put(o, "global_tools", textList(f.GlobalTools, true), "mcp_servers", textList(f.MCPServers, true),
		"conversation_starters", textList(f.ConversationStarters, true), "initial_state", f.InitialState, "start", f.Start)
	addSkills(o, f.Skills)
	o.Set("settings", jsonvalue.NewObject(
		jsonvalue.Member{Key: "max_loop_iterations", Value: int64(f.Settings.MaxLoopIterations)}, jsonvalue.Member{Key: "timeout", Value: seconds(f.Settings.Timeout)},
		jsonvalue.Member{Key: "log_state_snapshots", Value: f.Settings.LogStateSnapshots}, jsonvalue.Member{Key: "validate_before_run", Value: f.Settings.ValidateBeforeRun},
		jsonvalue.Member{Key: "max_concurrency", Value: int64(f.Settings.MaxConcurrency)},
	))
	reducers, nodes := &jsonvalue.Object{}, &jsonvalue.Object{}
	for _, r := range f.Reducers {
		reducers.Set(r.Key, r.Reducer)
	}
	var variables []any
	for _, v := range f.Variables {
		var def any
		if v.Default != nil {
			def = *v.Default
		}
		variables = append(variables, jsonvalue.NewObject(jsonvalue.Member{Key: "name", Value: v.Name}, jsonvalue.Member{Key: "description", Value: v.Description}, jsonvalue.Member{Key: "default", Value: def}))
	}
	for _, n := range f.Nodes {
		nodes.Set(n.ID, nodeData(n))
	}
	o.Set("reducers", reducers)
	o.Set("variables", variables)
	o.Set("nodes", nodes)
	return o
}

func nodeData(n *spec.Node) *jsonvalue.Object {
	o := jsonvalue.NewObject(jsonvalue.Member{Key: "id", Value: n.ID}, jsonvalue.Member{Key: "type", Value: n.Kind()}, jsonvalue.Member{Key: "description", Value: n.Description})
	if n.Next != nil {
		o.Set("next", textList(n.Next, true))
	}
	if n.Updates != nil {
		updates := &jsonvalue.Object{}
		for _, u := range n.Updates {
			updates.Set(u.Key, u.Value.String())
		}
		o.Set("state_updates", updates)
	}
	switch b := n.Body.(type) {
	case *agentNode:
		put(o, "agent", b.agent, "prompt", b.prompt.String(), "output_schema", n.OutputSchema, "timeout", int64(b.timeout))
	case *scriptNode:
		put(o, "script", b.script, "fallback", maybe(b.fallback), "timeout", int64(b.timeout))
	case *approvalNode:
		routes := &jsonvalue.Object{}
		for _, r := range b.routes {
			routes.Set(r.Key, r.Value)
		}
		put(o, "question", b.question.String(), "options", textList(b.options, true), "routes", routes, "on_other", b.onOther)
	case *inputNode:
		put(o, "question", b.question.String(), "default", maybe(b.fallback.String()), "validation", maybe(b.validation))
	case *endNode:
		put(o, "output", b.output.String())
		if b.exitCode != 0 {
			put(o, "exit_code", int64(b.exitCode))
		}
	case *mapNode:
		put(o, "over", b.over.String(), "as", b.As, "branch", b.To, "collect_into", b.CollectInto,
			"output_key", b.OutputKey, "max_concurrency", count(b.MaxConcurrency))
	case *llmNode:
		llmData(o, n, b)
	case *ragNode:
		put(o, "documents", textList(b.documents, true), "query", b.query.String(), "top_k", count(b.topK),
			"embedding_model", maybe(b.embeddingModel), "chunk_size", count(b.chunkSize), "chunk_overlap", count(b.chunkOverlap),
			"reranker_model", maybe(b.rerankerModel), "batch_size", count(b.batchSize), "timeout", int64(b.timeout),
			"extractor_model", maybe(b.extractorModel), "extractor_prompt", maybe(b.extractorPrompt),
			"graph_hops", count(b.graphHops), "driver", maybe(b.driver))
	}
	return o
}

func llmData(o *jsonvalue.Object, n *spec.Node, b *llmNode) {
	if b.instructions != nil {
		o.Set("instructions", b.instructions.String())
	}
	put(o, "prompt", b.prompt.String(), "tools", textList(b.tools, false), "model", maybe(b.model),
		"temperature", number(b.temperature), "top_p", number(b.topP), "reasoning_effort", maybe(b.reasoningEffort))
	addPatience(o, b.patience)
	put(o, "fallback", maybe(b.fallback), "max_attempts", int64(b.maxAttempts), "max_iterations", int64(b.maxIterations),
		"output_schema", n.OutputSchema, "timeout", seconds(b.timeout))
	addSkills(o, *n.Skills)
}

// addPatience adds a field that the cases do not have where it is not written.
func addPatience(o *jsonvalue.Object, p *strictyaml.Seconds) {
	if p != nil {
		o.Set("retry_patience", seconds(p))
	}
}

func addSkills(o *jsonvalue.Object, s spec.Skills) {
	put(o, "skills_enabled", flagData(s.Enabled), "enabled_skills", textList(s.Names, false),
		"inject_skill_instructions", flagData(s.Inject), "skill_instructions", maybe(s.Instructions))
}

// put sets members from names and values in turn.
func put(o *jsonvalue.Object, pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		o.Set(pairs[i].(string), pairs[i+1])
	}
}

func maybe(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func number(f *float64) any {
	if f == nil {
		return nil
	}
	return *f
}

func count(n *int) any {
	if n == nil {
		return nil
	}
	return int64(*n)
}

func seconds(s *strictyaml.Seconds) any {
	if s == nil {
		return nil
	}
	return int64(*s)
}

func flagData(b *bool) any {
	if b == nil {
		return nil
	}
	return *b
}

func textList(items []string, always bool) any {
	if items == nil && !always {
		return nil
	}
	out := []any{}
	for _, s := range items {
		out = append(out, s)
	}
	return out
}

// lookData follows a dotted path with optional [n]; keys may hold dots.
func lookData(v any, path string) any {
	if path == "" {
		return v
	}
	switch x := v.(type) {
	case *jsonvalue.Object:
		for end := len(path); end > 0; end-- {
			if end < len(path) && path[end] != '.' && path[end] != '[' {
				continue
			}
			if member, ok := x.Get(path[:end]); ok {
				return lookData(member, strings.TrimPrefix(path[end:], "."))
			}
		}
	case []any:
		digits, rest, _ := strings.Cut(strings.TrimPrefix(path, "["), "]")
		if !strings.HasPrefix(path, "[") {
			digits, rest, _ = strings.Cut(path, ".")
		}
		if i, err := strconv.Atoi(digits); err == nil && i >= 0 && i < len(x) {
			return lookData(x[i], strings.TrimPrefix(rest, "."))
		}
	}
	return nil
}

// sameField compares a field with what a case wants: a list of one is as good
// as its element, and the kind of a number does not matter.
func sameField(got, want any) bool {
	if jsonvalue.Equal(got, want) {
		return true
	}
	a, okA := jsonvalue.AsFloat(got)
	b, okB := jsonvalue.AsFloat(want)
	if okA && okB {
		return a == b
	}
	one, _ := got.([]any)
	return len(one) == 1 && jsonvalue.Equal(one[0], want)
}
