package runfile_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/redact"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runfile"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/llm"
	"raddle.dev/store/sqlite"
)

// echo is a model that repeats what it reads, with a text after it.
type echo string

func (echo) IsKnown(string, string) bool                               { return true }
func (m echo) Open(context.Context, string, string) (llm.Model, error) { return m, nil }
func (echo) Facts(string, string) (f flow.ModelFacts)                  { return f }

func (m echo) Stream(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		text := r.System + r.Messages[len(r.Messages)-1].Text() + string(m)
		yield(llm.Delta{Done: &llm.Reply{Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: text}}}}}, nil)
	}
}

// openProcess opens a process whose runs are in a file.
func openProcess(t *testing.T, work string, environ ...string) *app.Process {
	t.Helper()
	p, err := app.Open(app.Options{Work: work, Environ: append(environ, "HOME="+work, "PATH=/usr/bin:/bin"), Store: "sqlite:" + filepath.Join(work, "runs.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// runAgent runs an agent to its end and returns the id of the run.
func runAgent(t *testing.T, p *app.Process, req app.Request, answer any) string {
	t.Helper()
	run, err := p.StartRun(req)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	res, err := run.Drive(t.Context(), app.Driver{Reply: func(graph.Question) (any, bool) { return answer, answer != nil }})
	if err != nil || answer != nil && res.Status != graph.Done {
		t.Fatal(res.Status, err)
	}
	return run.ID
}

// export returns a run as a file.
func export(t *testing.T, p *app.Process, run string) []byte {
	t.Helper()
	f, err := runfile.Collect(t.Context(), runfile.Source{Archive: p.Runs, Run: run, Version: "v1", Secrets: p.Tools.SecretSet(), Learn: p.NewLearner()})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const secretsGraph = `
name: g
variables:
  - {name: token, description: a token, default: nothing}
start: call
nodes:
  call: {type: script, script: s.sh, next: ask}
  ask: {type: input, question: "more about {{initial_prompt}}?", state_updates: {said: "{{input}}"}, next: child}
  child: {type: agent, agent: below, prompt: "{{said}}", state_updates: {reply: "{{output}}"}, next: think}
  think: {type: llm, model: "x:y", instructions: "be {{made}}", prompt: "{{reply}} {{encoded}}", state_updates: {end: "{{output}}"}, next: e}
  e: {type: end, output: "{{end}}"}
`

// TestSecrets exports a run whose journal has 20 secrets that the process did not know then, plain and in encodings. The file has
// none of them. Imported, the run can be read.
func TestSecrets(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	work := t.TempDir()
	var secrets, environ []string
	for i := range 18 {
		s := fmt.Sprintf("s3cr%02dt-%x-Kd8\"q/%d+", i, i*7919, i)
		secrets, environ = append(secrets, s), append(environ, fmt.Sprintf("SERVICE%d_API_KEY=%s", i, s))
	}
	secrets = append(secrets, "dotenv-Zx81-Kw77-pass", "child-Yy12-Qq90-pass")
	quoted, _ := json.Marshal(secrets[3])
	texts := map[string]string{
		"g/graph.yaml":      secretsGraph,
		"g/s.sh":            "# " + secrets[0] + "\ncat \"$(dirname \"$0\")/out.json\"\n",
		"g/out.json":        fmt.Sprintf(`{"made": %q, "encoded": %q, "nested": [{"%s": %s}], "twice": %q}`, secrets[1], base64.StdEncoding.EncodeToString([]byte(secrets[2])), "key", quoted, `{"a": `+string(quoted)+`}`),
		"g/.env":            "SERVICE_PASSWORD=" + secrets[18] + "\n",
		"below/config.yaml": "name: below\nmodel: x:y\ninstructions: say {{__cwd__}} and " + secrets[4] + "\n",
		"below/.env":        "OTHER_PASSWORD=" + secrets[19] + "\n",
	}
	for name, text := range texts {
		testfile.WriteFile(t, filepath.Join(work, name), text)
	}
	before := openProcess(t, work)
	prompt := strings.Join(secrets[5:8], " ") + " " + url.QueryEscape(secrets[8])
	run := runAgent(t, before, app.Request{Agent: "./g", Prompt: prompt, Variables: map[string]string{"token": secrets[9]}, UIHooks: app.UIHooks{Adjust: func(h *flow.Host) {
		h.Redactor = &redact.Set{}
		h.Models = echo(strings.Join(secrets[10:15], ", "))
	}}}, strings.Join(secrets[15:], " and "))
	st, err := before.Runs.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	var written []byte
	for r := range journal.Records(t.Context(), st, run, journal.Range{}) {
		written = append(append(written, r.Head...), r.Data...)
	}
	known := redact.New(secrets...)
	if n := strings.Count(known.Text(string(written)), redact.Mask); n < len(secrets) {
		t.Fatalf("only %d secrets are in the journal", n)
	}
	before.Close()

	after := openProcess(t, work, environ...)
	text := export(t, after, run)
	checkNoSecret(t, known, secrets, text)
	f, err := runfile.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range f.Agents {
		if strings.Contains(a.Path, ".env") {
			t.Error("a hidden file is exported")
		}
	}
	if len(f.Agents) != 3 {
		t.Errorf("files %v", f.Agents)
	}
	fresh := journal.NewMemory()
	if _, err := f.Import(t.Context(), fresh, "f.raddle"); err != nil {
		t.Fatal(err)
	}
	snap, err := history.Inspect(t.Context(), fresh, run, 0)
	if err != nil || snap.Status != graph.Done || !strings.Contains(flow.OutcomeOf(graph.Result{Value: snap.Result}).Output, redact.Mask) {
		t.Errorf("the imported run: %v, %v", snap, err)
	}
}

// checkNoSecret looks for secrets in a file and in the base64 in it.
func checkNoSecret(t *testing.T, known *redact.Set, secrets []string, text []byte) {
	t.Helper()
	all := []string{string(text)}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		var l struct {
			Record struct {
				Head, Data []byte
				Text       string
			}
			File struct{ Text string }
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		all = append(all, string(l.Record.Head), string(l.Record.Data), l.Record.Text, l.File.Text)
	}
	for _, part := range all {
		if clean := known.Text(part); clean != part {
			t.Errorf("a secret is in the file: %q", part)
		}
		for i, s := range secrets {
			if strings.Contains(part, s) || strings.Contains(part, s[:12]) {
				t.Errorf("secret %d is in the file: %q", i, part)
			}
		}
	}
}

// TestImport exports a run, its fork and a pruned run, and imports them into another store: they can be read there, keep the
// numbers of their records, and are not replaced.
func TestImport(t *testing.T) {
	work := t.TempDir()
	testfile.WriteFile(t, filepath.Join(work, "g", "graph.yaml"), "name: g\nstart: a\nnodes:\n"+
		"  a: {type: llm, model: x, prompt: \"{{initial_prompt}}\", state_updates: {x: \"{{output}}\"}, next: ask}\n"+
		"  ask: {type: input, question: more, state_updates: {y: \"{{input}}\"}, next: e}\n  e: {type: end, output: \"{{x}} {{y}}\"}\n")
	p := openProcess(t, work)
	hooks := app.UIHooks{Adjust: func(h *flow.Host) { h.Models = echo("!") }}
	run := runAgent(t, p, app.Request{Agent: "./g", Prompt: "one", UIHooks: hooks}, "two")
	fork, _, err := p.ForkRun(t.Context(), app.Fork{From: run + "@3"})
	if err != nil {
		t.Fatal(err)
	}
	text := export(t, p, fork)
	f, err := runfile.Read(bytes.NewReader(text))
	if err != nil || len(f.Threads) != 2 || f.Threads[0].Name != run || f.Threads[1].Name != fork {
		t.Fatalf("%+v, %v", f, err)
	}
	if last := f.Threads[0].Records; last[len(last)-1].Seq != 3 {
		t.Errorf("the original ends at %d", last[len(last)-1].Seq)
	}
	other, err := sqlite.Open(filepath.Join(t.TempDir(), "other.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for again := range 2 {
		done, err := f.Import(t.Context(), other, "f.raddle")
		if err != nil || done.Known != (again == 1) || done.Run != fork {
			t.Errorf("import: %+v, %v", done, err)
		}
	}
	for _, name := range []string{run, fork} {
		st, _ := p.Runs.OpenStore()
		was, err := history.Inspect(t.Context(), st, name, f.Threads[slices.IndexFunc(f.Threads, func(th runfile.Thread) bool { return th.Name == name })].Records[0].Seq)
		is, err2 := history.Inspect(t.Context(), other, name, was.Head)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if d := cmp.Diff(was, is); d != "" {
			t.Errorf("%s differs:\n%s", name, d)
		}
	}
	if _, err := history.Abandon(t.Context(), other, fork, "continued"); err != nil {
		t.Fatal(err)
	}
	if done, err := f.Import(t.Context(), other, "f.raddle"); err != nil || !done.Known {
		t.Errorf("import of a run that was continued: %+v, %v", done, err)
	}
	busy := journal.NewMemory()
	if err := history.Fork(t.Context(), other, run, 3, "x"); err != nil {
		t.Fatal(err)
	}
	if err := busy.Append(t.Context(), fork, 0, []journal.Record{{Kind: journal.KindVoid, Time: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Import(t.Context(), busy, "f.raddle"); !errors.Is(err, runfile.ErrExists) {
		t.Errorf("another run with the id: %v", err)
	}
	for t2 := range busy.Threads(t.Context(), run) {
		t.Errorf("an import that failed left %s", t2.Name)
	}

	if _, err := p.Runs.PruneRun(t.Context(), run, history.Keep{}); err != nil {
		t.Fatal(err)
	}
	pruned, err := runfile.Read(bytes.NewReader(export(t, p, run)))
	if err != nil || pruned.Threads[0].Records[0].Seq < 2 {
		t.Fatalf("%+v, %v", pruned, err)
	}
	fresh := journal.NewMemory()
	if _, err := pruned.Import(t.Context(), fresh, "f.raddle"); err != nil {
		t.Fatal(err)
	}
	snap, err := history.Inspect(t.Context(), fresh, run, 0)
	if err != nil || snap.Status != graph.Done || snap.Head != pruned.Threads[0].Records[len(pruned.Threads[0].Records)-1].Seq {
		t.Errorf("a pruned run: %+v, %v", snap, err)
	}
}

// TestHostileFiles refuses files that are not what export wrote, each with a reason.
func TestHostileFiles(t *testing.T) {
	work := t.TempDir()
	testfile.WriteFile(t, filepath.Join(work, "g", "graph.yaml"), "name: g\nstart: e\nnodes:\n  e: {type: end, output: \"{{initial_prompt}}\"}\n")
	p := openProcess(t, work)
	text := string(export(t, p, runAgent(t, p, app.Request{Agent: "./g", Prompt: "hello"}, nil)))
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	seal := func(s string) string { // a file with a valid checksum
		f := strings.SplitAfter(s, "\n")
		return runfile.Seal(strings.Join(f[:len(f)-2], ""), len(f)-2)
	}
	tests := map[string]struct{ text, want string }{
		"empty":            {"", "not an exported run"},
		"other text":       {"hello\n", "not an exported run"},
		"other JSON":       {"{}\n", "not an exported run"},
		"other format":     {strings.Replace(text, "raddle-run-1", "tar", 1), `the format is "tar"`},
		"newer version":    {strings.Replace(text, "raddle-run-1", "raddle-run-2", 1), "another version"},
		"cut off":          {strings.Join(lines[:len(lines)-1], ""), "cut off"},
		"in a line":        {text[:len(text)/2], "line"},
		"changed":          {strings.Replace(text, `"version":"v1"`, `"version":"v2"`, 1), "checksum"},
		"more":             {text + "{}\n", "after the last line"},
		"record left out":  {seal(strings.Join(slices.Delete(slices.Clone(lines), 4, 5), "") + "\n"), "out of order"},
		"record changed":   {seal(strings.Replace(text, `"n":1,"at":1`, `"n":1,"at":2`, 1)), "damaged"},
		"unknown kind":     {seal(strings.Replace(text, `"n":1,`, `"n":77,`, 1)), "damaged"},
		"path above":       {seal(strings.Replace(text, `"path":"graph.yaml"`, `"path":"../../graph.yaml"`, 1)), "cannot be a file"},
		"absolute path":    {seal(strings.Replace(text, `"path":"graph.yaml"`, `"path":"/etc/passwd"`, 1)), "cannot be a file"},
		"hidden file":      {seal(strings.Replace(text, `"path":"graph.yaml"`, `"path":".env"`, 1)), "cannot be a file"},
		"agent above":      {seal(strings.Replace(text, `"agent":"g","path"`, `"agent":"..","path"`, 1)), "cannot be a file"},
		"no number":        {seal(strings.Replace(text, `{"record":{"seq":1,`, `{"record":{"seq":-1,`, 1)), "out of order"},
		"many are missing": {seal(strings.Replace(text, `{"record":{"seq":1,`, `{"record":{"seq":900000000,`, 1)), "pruned"},
		"deep":             {lines[0] + strings.Repeat(`{"file":`, 200_000) + "\n", "not valid"},
	}
	for name, test := range tests {
		_, err := runfile.Read(strings.NewReader(test.text))
		if _, ok := errors.AsType[*runfile.FormatError](err); !ok || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := runfile.Read(strings.NewReader(seal(text))); err != nil {
		t.Errorf("the file itself: %v", err)
	}
}

// FuzzRead reads anything without a panic.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"format":"raddle-run-1","thread":"a"}` + "\n" + `{"thread":{"name":"a","records":1}}` + "\n" + `{"record":{"seq":1,"n":1,"sum":"0000000000000001"}}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = runfile.Read(bytes.NewReader(text))
		_, _ = runfile.Read(strings.NewReader(runfile.Seal(string(text), bytes.Count(text, []byte("\n")))))
	})
}
