package flow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/llm"
	"raddle.dev/rag"
	"raddle.dev/tool"
)

// TestCaseRuns runs the conformance cases that run a graph, through the public
// API alone.
func TestCaseRuns(t *testing.T) { runCases(t, false) }

// TestExtraCaseRuns runs those whose scripts are TypeScript.
func TestExtraCaseRuns(t *testing.T) { runCases(t, true) }

func runCases(t *testing.T, typeScript bool) {
	for _, c := range readCases(t) {
		if c.Kind != "run" || slices.Contains(c.Requires, "tsx") != typeScript {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			runCase(t, c)
		})
	}
}

// caseRun is one case while it runs.
type caseRun struct {
	t     *testing.T
	c     *caseFile
	dir   string
	agent *Agent

	mu      sync.Mutex
	script  []*scriptedReply
	calls   []*jsonvalue.Object // requests made, in order
	people  []*jsonvalue.Object // what the person does, in order
	stubs   map[string][]any
	visited []any
	stderr  bytes.Buffer
	log     *recordedLog

	searches []*jsonvalue.Object
	embedded int // chunks
	stop     context.CancelFunc
}

type scriptedReply struct {
	*jsonvalue.Object
	used int
}

func runCase(t *testing.T, c *caseFile) {
	testneed.RequirePrograms(t, c.Requires...)
	r := &caseRun{t: t, c: c, dir: c.makeDirs(t), log: &recordedLog{}, stubs: map[string][]any{}}
	for _, v := range c.LLM {
		r.script = append(r.script, &scriptedReply{Object: v.(*jsonvalue.Object)})
	}
	for _, v := range c.User {
		r.people = append(r.people, v.(*jsonvalue.Object))
	}
	for name, v := range c.Agents.All() {
		r.stubs[name] = list(v.(*jsonvalue.Object), "stub")
	}
	r.fill()
	begun := time.Now()
	res, err := r.run()
	took := time.Since(begun)
	if err != nil && r.agent != nil {
		t.Logf("error: %v", err)
	}
	r.check(res, err, took)
	r.checkRetrieval()
}

// fill pads the initial state to the size that the case wants.
func (r *caseRun) fill() {
	if r.c.FillState == nil {
		return
	}
	f, err := ParseGraph("graph.yaml", []byte(r.c.Graph))
	if err != nil {
		r.t.Fatal(err)
	}
	key, total := textOf(r.c.FillState, "key"), intOf(r.c.FillState, "total_bytes")
	state := f.InitialState.Clone()
	state.Set("initial_prompt", r.c.Prompt)
	state.Set(key, "")
	pad := strings.Repeat("x", total-len(jsonvalue.Compact(state)))
	text := strings.Replace(r.c.Graph, "start:", "initial_state: {"+key+": \""+pad+"\"}\nstart:", 1)
	if f.InitialState.Len() > 0 {
		r.t.Fatal("fill_state of a graph with an initial_state of its own")
	}
	writeCaseFile(r.t, r.dir, "graph.yaml", text)
}

// run loads and runs the agent, answering questions as the case says.
func (r *caseRun) run() (graph.Result, error) {
	a, err := Load(r.dir, r.host())
	if err != nil {
		return graph.Result{}, err
	}
	r.agent = a
	if err := a.Prepare(r.t.Context()); err != nil {
		return graph.Result{}, err
	}
	defer func() { _ = a.Close() }()
	g, err := a.CompileGraph()
	if err != nil {
		return graph.Result{}, err
	}
	ctx, stop := context.WithCancel(r.t.Context())
	defer stop()
	r.stop = stop
	runner := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	narrate := NarrateCase(&r.stderr, a)
	record := LogCase(slog.New(r.log), a)
	drive := func(events iter.Seq2[graph.Event, error]) (res graph.Result, err error) {
		for e, failure := range events {
			if failure != nil {
				return res, a.Explain(failure)
			}
			narrate(e)
			record(e)
			r.note(e)
			if b, ok := e.Body.(graph.RunEnded); ok {
				res = b.Result
			}
		}
		return res, nil
	}
	in := a.Input(r.c.Prompt)
	in.Thread, in.Topics = "case", graph.AllTopics
	res, err := drive(runner.Run(ctx, in))
	for err == nil && res.Status == graph.Waiting {
		resume := graph.Resume{Thread: "case", Topics: graph.AllTopics}
		for _, q := range res.Questions {
			resume.Answers = append(resume.Answers, r.answer(q))
		}
		res, err = drive(runner.Resume(ctx, resume))
	}
	return res, err
}

// NarrateCase and LogCase write the lines of a run for people and those of its log. The tests outside of this package
// set them, because what narrates imports this package.
var (
	NarrateCase func(w io.Writer, a *Agent) func(graph.Event)
	LogCase     func(log *slog.Logger, a *Agent) func(graph.Event)
)

// note keeps what the run visited, and raises the abort signal where the case
// says.
func (r *caseRun) note(e graph.Event) {
	if e.Path != "" {
		return
	}
	switch b := e.Body.(type) {
	case graph.TaskDone:
		if b.Waiting {
			return
		}
		if n := len(r.visited); n > 0 {
			if last := r.visited[n-1].(*visitedStep); last.step == e.Step {
				last.nodes = append(last.nodes, e.Node)
				break
			}
		}
		r.visited = append(r.visited, &visitedStep{e.Step, []string{e.Node}})
	}
	if node := textOf(r.c.Host, "abort_after_node"); node != "" && e.Node == node {
		if _, done := e.Body.(graph.TaskDone); done {
			r.stop()
		}
	}
}

type visitedStep struct {
	step  int
	nodes []string
}

// check compares the outcome with the case's expectations.
func (r *caseRun) check(res graph.Result, err error, took time.Duration) {
	t, e := r.t, r.c.Expect
	r.c.wantErrors(t, err)
	if want, ok := e.Get("output"); ok && err == nil && OutcomeOf(res).Output != want {
		t.Errorf("output %q, want %q", OutcomeOf(res).Output, want)
	}
	if want := textOf(e, "output_regex"); want != "" && !regexp.MustCompile(want).MatchString(OutcomeOf(res).Output) {
		t.Errorf("output %q does not match %q", OutcomeOf(res).Output, want)
	}
	r.checkState(res)
	r.checkVisits()
	if want, ok := e.Get("llm_calls"); ok && want != int64(len(r.calls)) {
		t.Errorf("%d model calls, want %v", len(r.calls), want)
	}
	for i, want := range list(e, "llm_requests") {
		for key, v := range want.(*jsonvalue.Object).All() {
			if got, _ := r.calls[i].Get(key); got != v {
				t.Errorf("request %d: %s is %q, want %q", i, key, got, v)
			}
		}
	}
	for _, s := range r.script {
		optional := flagOf(s.Object, "optional", false) || flagOf(s.Object, "repeat", false)
		if never := flagOf(s.Object, "never", false); never && s.used > 0 || !never && !optional && s.used == 0 {
			t.Errorf("reply %s was used %d times", jsonvalue.Compact(s.Object), s.used)
		}
	}
	if len(r.people) > 0 {
		t.Errorf("%d answers were not asked for", len(r.people))
	}
	if most, ok := e.Get("max_seconds"); ok {
		if limit, _ := jsonvalue.AsFloat(most); took.Seconds() > limit {
			t.Errorf("it took %v, at most %v s allowed", took, limit)
		}
	}
	r.checkFindings()
	for _, path := range texts(e, "files_exist") {
		if !check.FileExists(filepath.Join(r.dir, path)) {
			t.Errorf("%s does not exist", path)
		}
	}
	linesInOrder(t, "stderr", texts(e, "stderr_lines_in_order"), strings.Split(r.stderr.String(), "\n"))
	r.checkLog()
}

func (r *caseRun) checkState(res graph.Result) {
	t, e := r.t, r.c.Expect
	if want, ok := e.Get("state"); ok {
		for key, v := range want.(*jsonvalue.Object).All() {
			if got, present := res.State.Value(key); !present || !jsonvalue.Equal(got, v) {
				t.Errorf("state %s is %s (present: %v), want %s", key, jsonvalue.Compact(got), present, jsonvalue.Compact(v))
			}
		}
	}
	for _, key := range texts(e, "state_absent") {
		if got, present := res.State.Value(key); present {
			t.Errorf("state has %s: %s", key, jsonvalue.Compact(got))
		}
	}
	if key := textOf(e, "file_gone"); key != "" {
		path, _ := res.State.Value(key)
		if text, _ := path.(string); text == "" || check.FileExists(text) {
			t.Errorf("the file %q of %s is still there", text, key)
		}
	}
}

func (r *caseRun) checkVisits() {
	t, e := r.t, r.c.Expect
	var got, want [][]string
	for _, v := range r.visited {
		nodes := v.(*visitedStep).nodes
		slices.Sort(nodes)
		got = append(got, nodes)
	}
	for _, v := range list(e, "visited") {
		switch v := v.(type) {
		case string:
			want = append(want, []string{v})
		case []any:
			var nodes []string
			for _, id := range v {
				nodes = append(nodes, id.(string))
			}
			slices.Sort(nodes)
			want = append(want, nodes)
		}
	}
	if diff := cmp.Diff(want, got); want != nil && diff != "" {
		t.Errorf("visited (-want +got):\n%s", diff)
	}
	for _, id := range texts(e, "not_visited") {
		if slices.ContainsFunc(got, func(nodes []string) bool { return slices.Contains(nodes, id) }) {
			t.Errorf("%s was visited", id)
		}
	}
}

func (r *caseRun) checkFindings() {
	t, e := r.t, r.c.Expect
	var warnings, nodes []string
	if r.agent != nil {
		for _, f := range r.agent.Findings {
			if f.Class == strictyaml.ClassValidate && f.Severity == strictyaml.SeverityWarning {
				warnings, nodes = append(warnings, findingText(f.Node, f.Message)), append(nodes, f.Node)
			}
		}
	}
	for _, w := range list(e, "warnings_include") {
		node, _ := w.(*jsonvalue.Object).Get("node")
		if want := findingText(node, textOf(w.(*jsonvalue.Object), "message")); !slices.Contains(warnings, want) {
			t.Errorf("no warning %q among %q", want, warnings)
		}
	}
	if _, ok := e.Get("warnings_nodes"); ok {
		if diff := cmp.Diff(texts(e, "warnings_nodes"), nodes); diff != "" {
			t.Errorf("nodes of the warnings:\n%s", diff)
		}
	}
}

func (r *caseRun) checkLog() {
	var want []string
	for _, v := range list(r.c.Expect, "log_lines_in_order") {
		o := v.(*jsonvalue.Object)
		line := regexp.QuoteMeta(textOf(o, "text"))
		if pattern := textOf(o, "regex"); pattern != "" {
			line = strings.TrimSuffix(strings.TrimPrefix(pattern, "^"), "$")
		}
		want = append(want, "/^"+textOf(o, "level")+" "+line+"$/")
	}
	linesInOrder(r.t, "the log", want, r.log.lines)
}

// linesInOrder looks for lines, or /patterns/, one after the other.
func linesInOrder(t *testing.T, what string, want, got []string) {
	t.Helper()
	at := 0
	for _, w := range want {
		matches := func(line string) bool { return line == w }
		if len(w) > 1 && w[0] == '/' && w[len(w)-1] == '/' {
			matches = regexp.MustCompile(w[1 : len(w)-1]).MatchString
		}
		found := slices.IndexFunc(got[at:], matches)
		if found < 0 {
			t.Errorf("%s lacks %q behind line %d:\n%s", what, w, at, strings.Join(got, "\n"))
			return
		}
		at += found + 1
	}
}

func textOf(o *jsonvalue.Object, key string) string {
	v, _ := o.Get(key)
	s, _ := v.(string)
	return s
}

func intOf(o *jsonvalue.Object, key string) int {
	v, _ := o.Get(key)
	n, _ := v.(int64)
	return int(n)
}

// retrieval plays the embedding model of a case, its person before the run, and
// the bases that it scripts.
func (r *caseRun) retrieval() Retrieval {
	t := Retrieval{
		Embedder: func(string) (rag.Embedder, error) { return caseEmbedder{r}, nil },
		Base: func(_, node string) (Searcher, bool) {
			if r.c.RAG == nil {
				return nil, false
			}
			script, ok := r.c.RAG.Get(node)
			if !ok {
				return nil, false
			}
			return &scriptedBase{run: r, node: node, script: script.(*jsonvalue.Object)}, true
		},
	}
	if flagOf(r.c.Host, "tty", true) {
		t.Confirm = r.confirm
	}
	return t
}

// confirm is what the person says before the run.
func (r *caseRun) confirm(question string) (bool, error) {
	if len(r.people) == 0 {
		r.t.Fatalf("no answer is left for %q", question)
	}
	p := r.people[0]
	r.people = r.people[1:]
	if kind := textOf(p, "kind"); kind != "confirm" {
		r.t.Errorf("%s is asked as confirm, want %s", question, kind)
	}
	r.sameText(p, "question", question)
	if flagOf(p, "cancel", false) {
		return false, errors.New("cancelled")
	}
	return flagOf(p, "answer", true), nil
}

// caseEmbedder gives the vectors of a case, or some that only depend on the words.
type caseEmbedder struct{ run *caseRun }

func (e caseEmbedder) Embed(_ context.Context, purpose rag.Purpose, texts []string) ([][]float32, error) {
	given, _ := e.run.c.Host.Get("embeddings")
	table, _ := given.(*jsonvalue.Object)
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		v, ok := table.Get(text)
		if !ok {
			vectors[i] = wordVector(text)
			continue
		}
		for _, x := range v.([]any) {
			f, _ := jsonvalue.AsFloat(x)
			vectors[i] = append(vectors[i], float32(f))
		}
	}
	if purpose == rag.ForDocument {
		e.run.embedded += len(texts)
	}
	return vectors, nil
}

func wordVector(text string) []float32 {
	v := make([]float32, 64)
	for _, word := range strings.Fields(strings.ToLower(text)) {
		h := fnv.New32a()
		_, _ = h.Write([]byte(strings.Trim(word, ".,!?")))
		v[h.Sum32()%64]++
	}
	return v
}

// scriptedBase is a base whose two searches a case has written down.
type scriptedBase struct {
	run    *caseRun
	node   string
	script *jsonvalue.Object
}

func (b *scriptedBase) Search(ctx context.Context, query string, o rag.SearchOptions) ([]rag.Hit, error) {
	top := o.TopK
	if top == 0 {
		top = intOf(b.script, "top_k")
	}
	if top == 0 {
		top = rag.DefaultTopK
	}
	b.run.mu.Lock()
	b.run.searches = append(b.run.searches, jsonvalue.NewObject(jsonvalue.Member{Key: "node", Value: b.node}, jsonvalue.Member{Key: "query", Value: query}, jsonvalue.Member{Key: "top_k", Value: int64(top)}))
	b.run.mu.Unlock()
	delay := jsonvalue.NewObject(jsonvalue.Member{Key: "delay_ms", Value: int64(intOf(b.script, "search_delay_ms"))})
	if err := pause(ctx, delay); err != nil {
		return nil, err
	}
	if text := textOf(b.script, "search_error"); text != "" {
		return nil, errors.New(text)
	}
	return b.rank(query, top)
}

func (b *scriptedBase) rank(query string, top int) ([]rag.Hit, error) {
	ranked := func(key string) []string {
		lists, _ := b.script.Get(key)
		o, _ := lists.(*jsonvalue.Object)
		list := texts(o, query)
		return list[:min(top, len(list))]
	}
	scores := map[string]float64{}
	var ids []string
	for _, l := range []struct {
		ids    []string
		weight float64
	}{{ranked("vector"), 1.125}, {ranked("keyword"), 1}} {
		for i, id := range l.ids {
			if _, seen := scores[id]; !seen {
				ids = append(ids, id)
			}
			scores[id] += l.weight / float64(2*top+i+1)
		}
	}
	if reorder, ok := b.script.Get("rerank"); ok {
		return b.reranked(reorder.(*jsonvalue.Object), query, ids, top)
	}
	slices.SortStableFunc(ids, func(x, y string) int {
		switch {
		case scores[x] > scores[y]:
			return -1
		case scores[x] < scores[y]:
			return 1
		}
		return 0
	})
	return b.hits(ids[:min(top, len(ids))]), nil
}

func (b *scriptedBase) reranked(reorder *jsonvalue.Object, query string, ids []string, top int) ([]rag.Hit, error) {
	v, ok := reorder.Get(query)
	if !ok {
		return nil, fmt.Errorf("no scripted order for %q", query)
	}
	order := v.(*jsonvalue.Object)
	hits := b.hits(ids)
	var sent []string
	for _, h := range hits {
		sent = append(sent, h.Text)
	}
	if want := texts(order, "documents"); want != nil {
		if diff := cmp.Diff(want, sent); diff != "" {
			b.run.t.Errorf("the reranker receives (-want +got):\n%s", diff)
		}
	}
	var out []rag.Hit
	for _, i := range list(order, "order") {
		if n := int(i.(int64)); n < len(hits) && len(out) < top {
			out = append(out, hits[n])
		}
	}
	return out, nil
}

func (b *scriptedBase) hits(ids []string) []rag.Hit {
	var hits []rag.Hit
	files := list(b.script, "files")
	for _, id := range ids {
		var file, chunk int
		if _, err := fmt.Sscanf(id, "%d-%d", &file, &chunk); err != nil || file >= len(files) {
			b.run.t.Errorf("no chunk %s", id)
			continue
		}
		f := files[file].(*jsonvalue.Object)
		hits = append(hits, rag.Hit{Path: textOf(f, "path"), Text: texts(f, "chunks")[chunk], Chunk: chunk})
	}
	return hits
}

// checkRetrieval compares the searches, and runs the case again where it says so.
func (r *caseRun) checkRetrieval() {
	if want := list(r.c.Expect, "rag_searches"); want != nil {
		var got []any
		for _, s := range r.searches {
			got = append(got, s)
		}
		if !jsonvalue.Equal(want, got) {
			r.t.Errorf("searches %s, want %s", jsonvalue.Compact(got), jsonvalue.Compact(want))
		}
	}
	again, _ := r.c.Expect.Get("second_run")
	o, ok := again.(*jsonvalue.Object)
	if !ok {
		return
	}
	before := r.embedded
	if _, err := r.run(); err != nil {
		r.t.Errorf("the second run: %v", err)
	}
	if rebuilds := flagOf(o, "rebuilds", false); rebuilds != (r.embedded > before) {
		r.t.Errorf("the second run embeds %d chunks", r.embedded-before)
	}
}

// caseTools are the tools of a case. Each gives the text that the case has for
// it; a server is one function, named by its prefix.
type caseTools struct {
	run   *caseRun
	known check.Context
}

// Open implements Toolbox.
func (b caseTools) Open(ToolNeed) (*Toolset, error) {
	set := &Toolset{}
	results, _ := b.run.c.Host.Get("tool_results")
	texts, _ := results.(*jsonvalue.Object)
	for _, file := range b.known.Tools {
		name := spec.ToolStem(file)
		set.Tools = append(set.Tools, tool.Tool{Name: name, Run: func(context.Context, tool.Call) (tool.Result, error) {
			return tool.TextResult(textOf(texts, name)), nil
		}})
	}
	set.Servers = b.known.Servers
	set.Serve = func(_ context.Context, ids []string) (tools []tool.Tool, _ []error) {
		for _, id := range ids {
			tools = append(tools, tool.Tool{Name: serverPrefix + id, Run: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }})
		}
		return tools, nil
	}
	return set, nil
}

// said is the message of a scripted reply.
func said(reply *jsonvalue.Object, turn int) llm.Message {
	m := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: textOf(reply, "text")}}}
	for i, v := range list(reply, "tool_calls") {
		call := v.(*jsonvalue.Object)
		args, _ := call.Get("args")
		m.Parts = append(m.Parts, llm.ToolCall{ID: fmt.Sprintf("call%d.%d", turn, i), Name: textOf(call, "name"), Args: json.RawMessage(jsonvalue.Compact(args))})
	}
	return m
}

// checkTools compares the offered tools and servers, and the last outcome, with
// what a reply expects of them.
func (r *caseRun) checkTools(s *jsonvalue.Object, req llm.Request) {
	offered := map[string][]string{"expect_tools": {}, "expect_mcp": {}}
	for _, t := range req.Tools {
		if id, ok := strings.CutPrefix(t.Name, serverPrefix); ok {
			offered["expect_mcp"] = append(offered["expect_mcp"], id)
		} else {
			offered["expect_tools"] = append(offered["expect_tools"], t.Name)
		}
	}
	for _, key := range []string{"expect_tools", "expect_mcp"} {
		if _, ok := s.Get(key); !ok {
			continue
		}
		want, got := append([]string{}, texts(s, key)...), offered[key]
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			r.t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	if want := textOf(s, "expect_tool_result"); want != "" && !strings.Contains(lastOutcome(req.Messages), want) {
		r.t.Errorf("the last outcome is %q, want %q in it", lastOutcome(req.Messages), want)
	}
}

func lastOutcome(messages []llm.Message) string {
	last := messages[len(messages)-1]
	if last.Role != llm.RoleTool || len(last.Parts) == 0 {
		return ""
	}
	result, _ := last.Parts[len(last.Parts)-1].(llm.ToolResult)
	return llm.Message{Parts: result.Content}.Text()
}
