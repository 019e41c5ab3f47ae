package flow

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
)

// unitsElsewhere are unit tables of functions that other packages have, and run in their tests.
// TestCases fails when one of them has got a runner.
var unitsElsewhere = map[string]string{
	"bm25_rank":   "package rag runs it",
	"glob_select": "package rag runs it",
	"rag_output":  "package rag runs it",
	"rrf":         "package rag runs it",
	"split_text":  "package rag runs it",
}

// casesElsewhere are the cases in testdata that those tables are.
var casesElsewhere = []string{"rag-bm25-order", "rag-fusion-table", "rag-glob-table", "rag-sources-table"}

// units run one row of a table; got is compared with the row's want.
var units = map[string]func(c *caseFile, row *jsonvalue.Object) (got any, err error){
	"template_strict": func(c *caseFile, row *jsonvalue.Object) (any, error) {
		return rowTemplate(row).Render(rowState(c, row))
	},
	"template_lenient": func(c *caseFile, row *jsonvalue.Object) (any, error) {
		return rowTemplate(row).RenderLenient(rowState(c, row)), nil
	},
	"template_raw": func(c *caseFile, row *jsonvalue.Object) (any, error) { return rowTemplate(row).Eval(rowState(c, row)) },
	"length_predicate": func(_ *caseFile, row *jsonvalue.Object) (any, error) {
		p, err := spec.ParsePredicate(rowText(row, "expr"))
		return p.IsSatisfiedBy(uint64(len(rowText(row, "in")))), err
	},
	"is_transient": func(_ *caseFile, row *jsonvalue.Object) (any, error) { return isTransient(rowText(row, "in")), nil },
	"json_fast_path": func(_ *caseFile, row *jsonvalue.Object) (any, error) {
		v, ok := fastPath(rowText(row, "in"))
		if !ok {
			return nil, errNoFastPath
		}
		return v, nil
	},
	"script_output": func(_ *caseFile, row *jsonvalue.Object) (any, error) {
		text := rowText(row, "in")
		if stdout := rowText(row, "stdout"); stdout != "" {
			text = stdout
		}
		r, err := parseScriptOutput(text)
		if err != nil {
			return nil, err
		}
		return r, nil
	},
	"reducer": func(_ *caseFile, row *jsonvalue.Object) (any, error) {
		current, _ := row.Get("current")
		incoming, _ := row.Get("incoming")
		present := current != "absent"
		if !present {
			current = nil
		}
		return spec.ReducersByKey[rowText(row, "reducer")](current, present, incoming)
	},
}

var errNoFastPath = errors.New("the fast path does not read it")

// TestCases runs the conformance cases that need no run of a graph.
func TestCases(t *testing.T) {
	var elsewhere []string
	for _, c := range readCases(t) {
		run := map[string]func(*testing.T, *caseFile){"unit": unitCase, "parse": parseCase, "validate": validateCase}[c.Kind]
		switch {
		case c.Kind == "run":
		case run == nil:
			t.Errorf("%s: unknown kind %q", c.Path, c.Kind)
		case c.Kind == "unit" && unitsElsewhere[c.Unit] != "":
			if strings.HasPrefix(c.Path, "testdata") {
				elsewhere = append(elsewhere, c.ID)
			}
			t.Logf("%s does not run here: %s", c.ID, unitsElsewhere[c.Unit])
		default:
			t.Run(c.ID, func(t *testing.T) { run(t, c) })
		}
	}
	if diff := cmp.Diff(casesElsewhere, elsewhere); diff != "" {
		t.Errorf("casesElsewhere is stale (-listed +found):\n%s", diff)
	}
	for name := range unitsElsewhere {
		if units[name] != nil {
			t.Errorf("unit %s has a runner: remove it from unitsElsewhere", name)
		}
	}
}

func unitCase(t *testing.T, c *caseFile) {
	run := units[c.Unit]
	if run == nil {
		t.Fatalf("unknown unit %q", c.Unit)
	}
	for i, v := range c.Rows {
		row, ok := v.(*jsonvalue.Object)
		if !ok {
			t.Fatalf("row %d is %s", i, jsonvalue.TypeName(v))
		}
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			got, err := run(c, row)
			checkRow(t, row, got, err)
		})
	}
}

func checkRow(t *testing.T, row *jsonvalue.Object, got any, err error) {
	t.Helper()
	text := jsonvalue.Compact(row)
	if none := flagOf(row, "none", false); none {
		if err == nil {
			t.Errorf("%s: got %s", text, jsonvalue.Compact(got))
		}
		return
	}
	if want, ok := row.Get("error"); ok {
		if err == nil || !strings.Contains(err.Error(), want.(string)) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if r, ok := got.(scriptResult); ok {
		checkScript(t, row, r)
		return
	}
	want, _ := row.Get("want")
	if !jsonvalue.Equal(got, want) || jsonvalue.Compact(got) != jsonvalue.Compact(want) {
		t.Errorf("%s: got %s", text, jsonvalue.Compact(got))
	}
}

// matchesText compares an error with the outermost text of it.
func matchesText(got, want string) bool { return got == want || strings.HasPrefix(got, want+": ") }

func checkScript(t *testing.T, row *jsonvalue.Object, got scriptResult) {
	t.Helper()
	want, listed := row.Get("state")
	if state, _ := want.(*jsonvalue.Object); listed && !jsonvalue.Equal(got.Writes, state) {
		t.Errorf("%s: writes %s", jsonvalue.Compact(row), jsonvalue.Compact(got.Writes))
	}
	next, _ := row.Get("next")
	if text, routed := next.(string); routed != got.Routed || text != got.Next {
		t.Errorf("%s: next %q (%t)", jsonvalue.Compact(row), got.Next, got.Routed)
	}
}

func rowText(row *jsonvalue.Object, key string) string {
	v, _ := row.Get(key)
	text, _ := v.(string)
	return text
}

func rowTemplate(row *jsonvalue.Object) spec.Template { return spec.ParseTemplate(rowText(row, "in")) }

func rowState(c *caseFile, row *jsonvalue.Object) func(string) (any, bool) {
	state := c.State
	if own, ok := row.Get("state"); ok {
		state = own
	}
	o, _ := state.(*jsonvalue.Object)
	return o.Get
}

func parseCase(t *testing.T, c *caseFile) {
	f, err := ParseGraph("graph.yaml", []byte(c.Graph))
	c.wantErrors(t, err)
	if err != nil {
		return
	}
	parsed, _ := c.Expect.Get("parsed")
	fields, _ := parsed.(*jsonvalue.Object)
	data := fileData(f)
	for path, want := range fields.All() {
		if got := lookData(data, path); !sameField(got, want) {
			t.Errorf("%s is %s, want %s", path, jsonvalue.Compact(got), jsonvalue.Compact(want))
		}
	}
}

func validateCase(t *testing.T, c *caseFile) {
	f, err := ParseGraph("graph.yaml", []byte(c.Graph))
	c.wantErrors(t, err)
	if err != nil {
		return
	}
	dir := c.makeDirs(t)
	findings := check.ValidateFile(f, c.known(dir))
	for _, kind := range []struct {
		key      string
		severity strictyaml.Severity
	}{{"errors", strictyaml.SeverityError}, {"warnings", strictyaml.SeverityWarning}} {
		want, listed := c.Expect.Get(kind.key)
		if !listed {
			continue
		}
		wanted, got := []string{}, []string{}
		for _, v := range want.([]any) {
			o := v.(*jsonvalue.Object)
			node, _ := o.Get("node")
			wanted = append(wanted, findingText(node, strings.ReplaceAll(rowText(o, "message"), "{agent_dir}", dir)))
		}
		for _, found := range findings {
			if found.Severity == kind.severity {
				got = append(got, findingText(found.Node, found.Message))
			}
		}
		if ordered, _ := c.Raw.Get("ordered"); ordered != true && !flagOf(c.Expect, "ordered", false) {
			slices.Sort(wanted)
			slices.Sort(got)
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind.key, diff)
		}
	}
	checkWarningNodes(t, c, findings)
	for _, v := range list(c.Expect, "warnings_include") {
		o := v.(*jsonvalue.Object)
		node, _ := o.Get("node")
		if want := findingText(node, rowText(o, "message")); !slices.Contains(findingTexts(findings), want) {
			t.Errorf("no warning %q", want)
		}
	}
}

func checkWarningNodes(t *testing.T, c *caseFile, findings []strictyaml.Finding) {
	t.Helper()
	want, listed := c.Expect.Get("warnings_nodes")
	if !listed {
		return
	}
	got := []any{}
	for _, f := range findings {
		switch {
		case f.Severity != strictyaml.SeverityWarning:
		case f.Node == "":
			got = append(got, nil)
		default:
			got = append(got, f.Node)
		}
	}
	if !jsonvalue.Equal(got, want) {
		t.Errorf("nodes of warnings are %s, want %s", jsonvalue.Compact(got), jsonvalue.Compact(want))
	}
}

// deadlineData adds the deadline of a question.
func deadlineData(o *jsonvalue.Object, d *spec.Deadline) {
	put(o, "deadline", maybe(d.After.String()))
	switch {
	case d.To != "":
		put(o, "on_deadline", d.To)
	case d.HasAnswer:
		put(o, "on_deadline_answer", d.Answer.String())
	}
}

// fileData is a parsed file as data under the names of its fields, with unset
// optional fields as null.
func fileData(f *spec.File) *jsonvalue.Object {
	o := jsonvalue.NewObject(
		jsonvalue.Member{Key: "name", Value: f.Name}, jsonvalue.Member{Key: "description", Value: f.Description}, jsonvalue.Member{Key: "version", Value: f.Version},
		jsonvalue.Member{Key: "model", Value: maybe(f.Model)}, jsonvalue.Member{Key: "temperature", Value: number(f.Temperature)}, jsonvalue.Member{Key: "top_p", Value: number(f.TopP)},
		jsonvalue.Member{Key: "reasoning_effort", Value: maybe(f.ReasoningEffort)},
	)
	addCallSettings(o, f.ParallelCalls, f.ProviderTools)
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
		put(o, "agent", b.agent, "prompt", b.prompt.String(), "output_schema", n.OutputSchema, "timeout", int64(b.timeout), "queue", maybe(n.QueueName()))
	case *scriptNode:
		put(o, "script", b.script, "fallback", maybe(b.fallback), "timeout", int64(b.timeout))
	case *approvalNode:
		routes := &jsonvalue.Object{}
		for _, r := range b.routes {
			routes.Set(r.Key, r.Value)
		}
		put(o, "question", b.question.String(), "options", textList(b.options, true), "routes", routes, "on_other", b.onOther)
		deadlineData(o, &b.deadline)
	case *inputNode:
		put(o, "question", b.question.String(), "default", maybe(b.fallback.String()), "validation", maybe(b.validation))
		deadlineData(o, &b.deadline)
	case *waitNode:
		put(o, "for", maybe(b.span.String()), "until", maybe(b.moment.String()))
		if b.event.Text != "" {
			members := jsonvalue.NewObject()
			for _, m := range b.match {
				members.Set(m.name, m.value.String())
			}
			put(o, "event", b.event.String(), "match", members)
			deadlineData(o, &b.deadline)
		}
	case *endNode:
		put(o, "output", b.output.String())
		if b.exitCode != 0 {
			put(o, "exit_code", int64(b.exitCode))
		}
	case *mapNode:
		put(o, "over", b.over.String(), "as", b.As, "branch", b.To, "collect_into", b.CollectInto,
			"output_key", b.OutputKey, "max_concurrency", count(b.MaxConcurrency), "queue", maybe(n.QueueName()))
		if b.OnFailure != spec.OnFailureStop {
			put(o, "on_failure", b.OnFailure)
		}
	case *llmNode:
		llmData(o, n, b)
	case *ragNode:
		put(o, "documents", textList(b.documents, true), "query", b.query.String(), "top_k", count(b.topK),
			"embedding_model", maybe(b.embeddingModel), "chunk_size", count(b.chunkSize), "chunk_overlap", count(b.chunkOverlap),
			"reranker_model", maybe(b.rerankerModel), "batch_size", count(b.batchSize), "timeout", int64(b.timeout),
			"extractor_model", maybe(b.extractorModel), "extractor_prompt", maybe(b.extractorPrompt),
			"graph_hops", count(b.graphHops), "driver", maybe(b.driver))
		if f := b.fusion; f != (spec.Fusion{}) {
			weights := jsonvalue.NewObject()
			put(weights, "meaning", number(f.Meaning), "words", number(f.Words), "entities", number(f.Entities))
			put(o, "fusion", maybe(f.Method), "weights", weights)
		}
	}
	return o
}

func llmData(o *jsonvalue.Object, n *spec.Node, b *llmNode) {
	if b.instructions != nil {
		o.Set("instructions", b.instructions.String())
	}
	put(o, "prompt", b.prompt.String(), "tools", textList(b.tools, false), "model", maybe(b.model),
		"temperature", number(b.temperature), "top_p", number(b.topP), "reasoning_effort", maybe(b.reasoningEffort))
	addCallSettings(o, b.parallelCalls, b.providerTools)
	addPatience(o, b.patience)
	put(o, "fallback", maybe(b.fallback), "max_attempts", int64(b.maxAttempts), "max_iterations", int64(b.maxIterations),
		"output_schema", n.OutputSchema, "timeout", seconds(b.timeout))
	addSkills(o, *n.Skills)
}

// addCallSettings adds fields that the cases do not have where they are not written.
func addCallSettings(o *jsonvalue.Object, parallel *bool, provided []string) {
	if parallel != nil {
		o.Set("parallel_calls", *parallel)
	}
	if provided != nil {
		o.Set("provider_tools", textList(provided, false))
	}
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
