package experiment

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"raddle.dev/flow"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/dataset"
	"raddle.dev/internal/proving/score"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/llm"
)

// A world is a directory with agents, a process, and models that count what they are asked.
type world struct {
	t    *testing.T
	work string
	p    *app.Process

	mu    sync.Mutex
	asked []string // texts of requests
	fails bool     // every call
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, work: t.TempDir()}
	testfile.WriteFile(t, filepath.Join(w.work, "answer", "config.yaml"), "name: answer\ndescription: Answers\nmodel: test:80\ninstructions: Answer.\nskills_enabled: false\n")
	w.open()
	t.Cleanup(func() { w.p.Close() })
	return w
}

// open opens the process, after closing an earlier one.
func (w *world) open() {
	w.t.Helper()
	if w.p != nil {
		w.p.Close()
	}
	var err error
	w.p, err = app.Open(app.Options{
		Work:    w.work,
		Environ: []string{"HOME=" + w.work, "PATH=" + os.Getenv("PATH"), "RADDLE_BOX=false"},
		Store:   "sqlite:" + filepath.Join(w.work, "runs.db"),
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// experiment returns an experiment about items, with the agent answer.
func (w *world) experiment(data string, variants ...string) *Experiment {
	w.t.Helper()
	file, err := dataset.Read(filepath.Join(w.work, "data.jsonl"), []byte(data))
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := ReadVariants(variants, w.work)
	if err != nil {
		w.t.Fatal(err)
	}
	return &Experiment{
		Process:  w.p,
		Agent:    filepath.Join(w.work, "answer"),
		Data:     file,
		Variants: all,
		Scorers:  score.Default(),
		Repeat:   1,
		Jobs:     2,
		Hooks:    app.UIHooks{Adjust: func(h *flow.Host) { h.Models = w }},
	}
}

// makeItems returns n items that expect the text yes.
func makeItems(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"prompt": "question %d", "expect": {"contains": "yes"}}`+"\n", i)
	}
	return b.String()
}

func (w *world) IsKnown(string, string) bool          { return true }
func (w *world) Facts(string, string) flow.ModelFacts { return flow.ModelFacts{} }
func (w *world) Open(_ context.Context, _, id string) (llm.Model, error) {
	_, percent, _ := strings.Cut(id, ":")
	n, err := strconv.Atoi(percent)
	return skilled{w, uint32(n)}, err
}

// skilled is a model that says yes to a share of the questions in percent, always to the same.
type skilled struct {
	*world
	percent uint32
}

func (m skilled) Stream(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		text := r.Messages[len(r.Messages)-1].Text()
		m.mu.Lock()
		m.asked = append(m.asked, text)
		fails := m.fails
		m.mu.Unlock()
		if fails {
			yield(llm.Delta{}, errors.New("out of order"))
			return
		}
		sum := fnv.New32a()
		sum.Write([]byte(text))
		reply := "no"
		if sum.Sum32()%100 < m.percent {
			reply = "yes"
		}
		yield(llm.Delta{Done: &llm.Reply{
			Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: reply + " to " + text}}},
			Stop:    llm.StopEnd,
		}}, nil)
	}
}

// The verdicts are those of the models' qualities, and a second run of the experiment pays nothing.
func TestVerdicts(t *testing.T) {
	w := newWorld(t)
	e := w.experiment(makeItems(60), "model=test:40,test:100,test:81")
	r, err := e.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range r.Variants {
		got = append(got, v.Name+": "+v.Scores[0].Verdict)
		if v.Done != 60 || v.Failed != 0 || v.Calls != 60 || v.Scores[0].Items != 60 {
			t.Errorf("%+v", v)
		}
	}
	want := []string{"as it is: ", "model=test:40: worse", "model=test:100: better", "model=test:81: no difference beyond chance"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	lines := r.Judge([]Least{{Score: 0.6}, {Scorer: "expect", Score: 0.1}})
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "model=test:40: score is 0.") || !strings.Contains(lines[1], "expect is worse than as it is by 0.") {
		t.Errorf("%q", lines)
	}
	if len(w.asked) != 240 {
		t.Errorf("%d calls, want 240", len(w.asked))
	}
	again, err := e.Run(t.Context())
	if err != nil || len(w.asked) != 240 || again.Reused != 240 {
		t.Errorf("%v, %d calls and %d cells reused, want 240 of both", err, len(w.asked), again.Reused)
	}
	for n := range again.Results {
		again.Results[n].Reused = false
	}
	again.Reused = 0
	if fmt.Sprintf("%+v", again.Variants[1].Scores[0].Interval) != fmt.Sprintf("%+v", r.Variants[1].Scores[0].Interval) {
		t.Error("the same results have another interval")
	}
}

// What is expected can change without another call; what the agent is given, or is made of, cannot.
func TestCellKeys(t *testing.T) {
	w := newWorld(t)
	calls := func(data string, variants ...string) int {
		t.Helper()
		before := len(w.asked)
		if _, err := w.experiment(data, variants...).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return len(w.asked) - before
	}
	for n, c := range []struct {
		data string
		want int
	}{
		{`{"prompt": "a", "expect": "x"}`, 1},
		{`{"id": "new", "prompt": "a", "expect": "y", "tags": ["t"], "metadata": {"b": 1}}`, 0},
		{`{"prompt": "b"}` + "\n" + `{"prompt": "a"}`, 1},
	} {
		if got := calls(c.data); got != c.want {
			t.Errorf("%d: %d calls, want %d", n, got, c.want)
		}
	}
	fresh := w.experiment(`{"prompt": "a"}`)
	fresh.Salt = "fresh"
	before := len(w.asked)
	for range 2 {
		if _, err := fresh.Run(t.Context()); err != nil || len(w.asked) != before+1 {
			t.Errorf("%v, a fresh experiment makes %d calls, want 1", err, len(w.asked)-before)
		}
	}
	config := filepath.Join(w.work, "answer", "config.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	testfile.WriteFile(t, config, string(text)+"temperature: 0.5\n")
	if got := calls(`{"prompt": "a"}`); got != 1 {
		t.Errorf("a changed agent makes %d calls, want 1", got)
	}
	testfile.WriteFile(t, config, string(text))
	if got := calls(`{"prompt": "a"}`); got != 0 {
		t.Errorf("the agent as it was makes %d calls, want 0", got)
	}
}

// An experiment that is interrupted after each cell, and whose process ends, runs every cell exactly once.
func TestInterrupted(t *testing.T) {
	w := newWorld(t)
	for round := 1; ; round++ {
		e := w.experiment(makeItems(6), "model=test:50")
		e.Jobs = 1
		ctx, stop := context.WithCancel(t.Context())
		fresh := 0
		e.Done = func(p Progress) {
			if !p.Cell.Reused {
				fresh++
				stop()
			}
		}
		r, err := e.Run(ctx)
		stop()
		if fresh > 1 {
			t.Fatalf("%d cells ran after the interruption", fresh)
		}
		if err == nil {
			if round != 13 || r.Done != 12 || r.Reused != 12 {
				t.Errorf("after %d rounds %d cells are done, %d of them reused", round, r.Done, r.Reused)
			}
			break
		}
		if !errors.Is(err, context.Canceled) || round > 13 {
			t.Fatalf("round %d: %v", round, err)
		}
		w.open()
	}
	slices.Sort(w.asked)
	if len(w.asked) != 12 || len(slices.Compact(w.asked)) != 6 {
		t.Errorf("the models were asked %q", w.asked)
	}
}

// Equal items share one run of each variant and round, also if they work at the same time.
func TestEqualItems(t *testing.T) {
	w := newWorld(t)
	e := w.experiment(strings.Repeat(makeItems(1), 6), "model=test:50")
	e.Jobs = 4
	r, err := e.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Done != 12 || r.Reused != 10 || len(w.asked) != 2 {
		t.Errorf("%d cells are done, %d of them reused, and the models were asked %d times", r.Done, r.Reused, len(w.asked))
	}
}

// A run that fails is a result. It is repeated only if that is wanted.
func TestFailedRuns(t *testing.T) {
	w := newWorld(t)
	w.fails = true
	e := w.experiment(makeItems(2))
	r, err := e.Run(t.Context())
	if err != nil || r.Variants[0].Failed != 2 || r.Variants[0].Scores[0].Mean != 0 || !strings.Contains(r.Explain()[0], "2 of 2 runs have no result") {
		t.Fatalf("%v, %+v, %q", err, r.Variants, r.Explain())
	}
	w.fails = false
	calls := len(w.asked)
	if r, err = e.Run(t.Context()); err != nil || r.Variants[0].Failed != 2 || len(w.asked) != calls {
		t.Errorf("%v, %+v", err, r.Variants)
	}
	e.Retry = true
	for range 2 {
		if r, err = e.Run(t.Context()); err != nil || r.Variants[0].Failed != 0 || len(w.asked) != calls+2 {
			t.Errorf("%v, %+v, %d calls", err, r.Variants, len(w.asked))
		}
	}
}

// costly is a judge that costs half a dollar.
type costly struct{ score.Outside }

func (costly) AskJudge(context.Context, string, score.Question) (reply string, cost float64, err error) {
	return `{"reason": "", "grade": 5}`, 0.5, nil
}

// No cell starts once the budget is used up, and a larger one continues.
func TestBudget(t *testing.T) {
	w := newWorld(t)
	e := w.experiment(makeItems(4), "model=test:50")
	e.Jobs = 1
	e.Budget = 1.5
	e.outside = costly{}
	var err error
	if e.Scorers, err = score.Read("s.yaml", []byte("- judge: is kind")); err != nil {
		t.Fatal(err)
	}
	r, err := e.Run(t.Context())
	if err != nil || r.Done != 3 || r.Cost != 1.5 || r.Variants[0].JudgeCost != 1 || !strings.Contains(r.Explain()[0], "3 of 8 cells have run") {
		t.Fatalf("%v, %+v", err, r)
	}
	e.Budget = 10
	if r, err = e.Run(t.Context()); err != nil || r.Done != 8 || r.Reused != 3 {
		t.Errorf("%v, %+v", err, r)
	}
}

// An item from the middle of a recorded run makes only the calls after it, and only those that its variant changes are
// another cell.
func TestFromTheMiddle(t *testing.T) {
	w := newWorld(t)
	testfile.WriteFile(t, filepath.Join(w.work, "two", "graph.yaml"), `name: two
model: test:100
start: draft
nodes:
  draft: {type: llm, prompt: "draft {{initial_prompt}}", state_updates: {text: "{{output}}"}, next: polish}
  polish: {type: llm, prompt: "polish {{text}}", state_updates: {text: "{{output}}"}, next: done}
  done: {type: end, output: "{{text}}"}
`)
	agent := filepath.Join(w.work, "two")
	run, err := w.p.StartRun(app.Request{Agent: agent, Prompt: "a tale", UIHooks: app.UIHooks{Adjust: func(h *flow.Host) { h.Models = w }}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Drive(t.Context(), app.Driver{}); err != nil {
		t.Fatal(err)
	}
	run.Close()
	points, err := w.p.Runs.ListCheckpoints(t.Context(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	var at int64
	for _, p := range points {
		if slices.Equal(p.Next, []string{"polish"}) {
			at = p.At
		}
	}
	w.asked = nil
	e := w.experiment(fmt.Sprintf(`{"from": "%s@%d", "expect": {"contains": "yes"}}`, run.ID, at), "prompt:polish=shorten {{text}}")
	e.Agent = agent
	r, err := e.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(w.asked)
	if want := []string{"polish yes to draft a tale", "shorten yes to draft a tale"}; !slices.Equal(w.asked, want) {
		t.Errorf("the models were asked %q, want %q", w.asked, want)
	}
	for _, v := range r.Variants {
		if v.Scores[0].Mean != 1 || v.Calls != 1 {
			t.Errorf("%+v", v)
		}
	}
	if _, err := e.Run(t.Context()); err != nil || len(w.asked) != 2 {
		t.Errorf("%v, %d calls", err, len(w.asked))
	}
}

// A variant that cannot run is found before any other runs.
func TestUnusableVariants(t *testing.T) {
	w := newWorld(t)
	e := w.experiment(makeItems(2), "agent=nothing-like-this")
	if _, err := e.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "the variant 'agent=nothing-like-this'") || len(w.asked) > 0 {
		t.Errorf("%v, %d calls", err, len(w.asked))
	}
	e = w.experiment(`{"prompt": "a", "files": ["lost.txt"]}`)
	if _, err := e.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "lost.txt") {
		t.Error(err)
	}
	outsideData := filepath.Join(t.TempDir(), "secret.txt")
	testfile.WriteFile(t, outsideData, "secret")
	for _, name := range []string{outsideData, "../" + filepath.Base(filepath.Dir(outsideData)) + "/secret.txt", "~/secret.txt"} {
		e = w.experiment(fmt.Sprintf(`{"prompt": "a", "files": [%q]}`, name))
		if _, err := e.Run(t.Context()); err == nil || len(w.asked) > 0 {
			t.Errorf("the file %s outside of the directory was read: %v", name, err)
		}
	}
	testfile.WriteFile(t, filepath.Join(w.work, "sub", "note.txt"), "a note")
	e = w.experiment(`{"prompt": "a", "files": ["sub/note.txt"]}`)
	if _, err := e.Run(t.Context()); err != nil || len(w.asked) != 1 || !strings.Contains(w.asked[0], "a note") {
		t.Errorf("%v, %q", err, w.asked)
	}
	for words, want := range map[string]string{
		"model":                   "replaces nothing",
		"modle=a:b":               `nothing is called "modle"`,
		"prompt:x=@lost.txt":      "lost.txt",
		"model=a:b,a:b":           "is there twice",
		"prompt:=x":               `nothing is called "prompt:"`,
		"model=a:b + prompt:x=@q": "q",
	} {
		if _, err := ReadVariants([]string{words}, w.work); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", words, err)
		}
	}
	testfile.WriteFile(t, filepath.Join(w.work, "new.txt"), "be brief")
	all, err := ReadVariants([]string{"model=a:b,c:d + prompt:x=@new.txt + variable:tone=dry"}, w.work)
	if err != nil || len(all) != 3 || all[2].Name != "model=c:d + prompt:x=@new.txt + variable:tone=dry" || all[2].Templates["x"] != "be brief" || all[1].Model != "a:b" || all[1].Variables["tone"] != "dry" {
		t.Errorf("%+v, %v", all, err)
	}
}

// What results say is data in every form of the report.
func TestReports(t *testing.T) {
	w := newWorld(t)
	r, err := w.experiment(`{"id": "<script>x</script>", "prompt": "<img src=x>", "expect": "]]>"}`).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	if err := r.WriteHTML(&page, []string{"<b>bad</b>"}); err != nil {
		t.Fatal(err)
	}
	if text := page.String(); strings.Contains(text, "<script") || strings.Contains(text, "<img") || strings.Contains(text, "<b>") || !strings.Contains(text, "&lt;img src=x&gt;") || strings.Contains(text, "http") {
		t.Error(text)
	}
	var xml strings.Builder
	if err := r.WriteJUnit(&xml, []string{"too bad"}); err != nil {
		t.Fatal(err)
	}
	if text := xml.String(); !strings.Contains(text, `tests="2" failures="2"`) || strings.Contains(text, "<script") {
		t.Error(text)
	}
}
