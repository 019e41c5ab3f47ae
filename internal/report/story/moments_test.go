package story

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/draw"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/llm"
)

// record returns a moment without a time, changed by set.
func record(kind journal.Kind, node string, set func(m *runs.Moment)) runs.Moment {
	m := runs.Moment{Entry: history.Entry{Kind: kind}, Node: node}
	if set != nil {
		set(&m)
	}
	return m
}

func TestEveryKindOfMomentIsDescribed(t *testing.T) {
	due := time.Date(2026, 12, 24, 18, 0, 0, 0, time.Local)
	asks := func(q graph.Question) func(m *runs.Moment) { return func(m *runs.Moment) { m.Question = &q } }
	ends := func(what string) func(m *runs.Moment) {
		return func(m *runs.Moment) { m.What, m.Reason, m.By = what, "graph: x", "Ada" }
	}
	effect := func(name string) func(m *runs.Moment) { return func(m *runs.Moment) { m.Effect = name } }
	for _, tt := range []struct {
		m    runs.Moment
		want string
	}{
		{record(journal.KindStart, "", func(m *runs.Moment) { m.Inner, m.Next = true, []string{"begin"} }), "started"},
		{record(journal.KindClaim, "", func(m *runs.Moment) { m.Keys = []string{agent.Messages.Name(), "x"} }), "resumed  wrote x"},
		{record(journal.KindCall, "sub", func(m *runs.Moment) { m.Next = []string{"a"} }), "sub: started → a"},
		{record(journal.KindCall, "sub", func(m *runs.Moment) { m.Inner = true }), "sub: started"},
		{record(journal.KindCall, "", func(m *runs.Moment) { m.Inner = true }), ""},
		{record(journal.KindStep, "", nil), ""},
		{record(journal.KindStep, "", func(m *runs.Moment) {
			m.From, m.Next, m.FailedNodes, m.Failure = []string{"a"}, []string{"b"}, []string{"a"}, "no\n key"
		}), "a failed: no key → b"},
		{record(journal.KindTask, "a", func(m *runs.Moment) { m.Failure = "no" }), "a: failed: no"},
		{record(journal.KindTask, "a", func(m *runs.Moment) { m.Inner = true }), ""},
		{record(journal.KindTask, "a", func(m *runs.Moment) { m.Keys = []string{"k"} }), "a: done  wrote k"},
		{record(journal.KindVoid, "a", func(m *runs.Moment) { m.What = "edited" }), "a: its results were dropped: edited"},
		{record(journal.KindQuestion, "a", asks(graph.Question{Rejected: "no number"})), "a: the answer was not accepted: no number"},
		{record(journal.KindQuestion, "a", asks(graph.Question{Kind: graph.KindTimer, Due: due})), "a: waits until 2026-12-24 18:00:00"},
		{record(journal.KindQuestion, "a", asks(graph.Question{Prompt: "Send?\nNow"})), `a: asked "Send? …"`},
		{record(journal.KindAnswer, "a", func(m *runs.Moment) { m.Expired = true }), "a: its time has come"},
		{record(journal.KindAnswer, "a", func(m *runs.Moment) { m.Expired, m.Refused = true, "too\nlate" }), "a: too late"},
		{record(journal.KindAnswer, "a", func(m *runs.Moment) { m.By, m.Answer = "Ada", []byte("3") }), `a: Ada answered "3"`},
		{record(journal.KindReturn, "", nil), ""},
		{record(journal.KindReturn, "sub", nil), "sub: ended"},
		{record(journal.KindReturn, "sub", func(m *runs.Moment) { m.What = "collected" }), ""},
		{record(journal.KindEdit, "", func(m *runs.Moment) { m.What, m.Next = "x", []string{"a"} }), "you edited x → a"},
		{record(journal.KindSnapshot, "", nil), ""},
		{record(journal.KindEnd, "", ends("failed")), "failed: graph: x"},
		{record(journal.KindEnd, "", func(m *runs.Moment) { m.What = "failed" }), "failed: no reason is recorded"},
		{record(journal.KindEnd, "", ends(graph.CleanedUp.String())), "cleaned up after: graph: x"},
		{record(journal.KindEnd, "", ends(graph.Paused.String())), "stopped (paused)"},
		{record(journal.KindEnd, "", ends("abandoned")), "abandoned by Ada"},
		{record(journal.KindEnd, "", func(m *runs.Moment) { m.What, m.Due = "waiting", due }), "waits for a time"},
		{record(journal.KindEnd, "", func(m *runs.Moment) { m.What, m.Due, m.Open = "waiting", due, []string{"e"} }), "waits for an event"},
		{record(journal.KindEnd, "", func(m *runs.Moment) { m.What, m.Open = "waiting", []string{"e", "ask"} }), "waits for an answer"},
		{record(journal.KindFailure, "a", effect("script")), "a: its script failed"},
		{record(journal.KindIntent, "a", effect("script")), "a: runs its script"},
		{record(journal.KindEffect, "a", effect("instructions")), "a: the instructions are made"},
		{record(journal.KindEffect, "a", effect("sources")), "a: looked which servers of tools are ready"},
		{record(journal.KindFailure, "a", effect("sources")), "a: sources failed"},
		{record(journal.KindIntent, "a", effect("")), "a: an effect began; its outcome is not recorded"},
		{record(journal.KindIntent, "a", effect(agent.HookEffect)), "a: a hook was cut off: it may or may not have done its work, and does not run again"},
		{record(journal.KindEffect, "a", func(m *runs.Moment) { m.Effect, m.Took, m.Timing.Retries = "x", 61*time.Second, 2 }), "a: x done, 1m01s (tried again 2 times)"},
		{record(journal.KindEffect, "a", func(m *runs.Moment) {
			m.Sent = []agent.SentMessage{{Text: "stop"}, {Text: "go", By: "Ada"}}
		}), `a: took up "stop", "go" of Ada`},
		{record(journal.KindEffect, "a", func(m *runs.Moment) { m.Reply = &flow.Reply{Interrupted: true} }), "a: the reply was cut off"},
		{record(journal.KindEffect, "a", func(m *runs.Moment) {
			m.Effect, m.Reply = "summary", &flow.Reply{Usage: llm.Usage{Input: 1200}, Flaw: "cut"}
		}), "a: the model summarised the conversation, 1.2k tokens (cut)"},
		{record(journal.KindEffect, "a", func(m *runs.Moment) { m.Search = &flow.Search{Query: "bees"} }), `a: searched "bees": 0 passages`},
		{record(journal.KindFailure, "a", func(m *runs.Moment) { m.Failure, m.FailedNodes, m.Took = "no key", []string{"a"}, time.Second }), "a: failed, 1.0 s: no key"},
		{record(journal.KindFailure, "a", func(m *runs.Moment) { m.Failure = "the worker is gone" }), "a: the worker is gone"},
	} {
		words := NewDescriber([]runs.Moment{record(journal.KindQuestion, "", asks(graph.Question{
			ID: "e", Kind: graph.KindEvent,
		}))}, &runs.Info{})
		if diff := cmp.Diff(tt.want, words.DescribeMoment(&tt.m)); diff != "" {
			t.Error(diff)
		}
	}
}

// Agents have names for people, with a number if several have the same one, and each day has a line of its own.
func TestMomentsOfDays(t *testing.T) {
	evening := time.Date(2026, 11, 29, 23, 59, 59, 0, time.Local)
	const one = "agent_reader_00000001"
	moments := []runs.Moment{
		record(journal.KindCall, "team/"+one, func(m *runs.Moment) { m.Seq, m.Time = 7, evening }),
		record(journal.KindSnapshot, "", func(m *runs.Moment) { m.Seq, m.Time = 8, evening.Add(time.Second) }),
		record(journal.KindReturn, "team/agent_reader_00000002", func(m *runs.Moment) { m.Seq, m.Time = 1234567, evening.Add(time.Second) }),
		record(journal.KindEdit, "", func(m *runs.Moment) { m.Seq, m.Time, m.What = 9, evening.Add(2*time.Second), "of "+one+"\x1b[31m" }),
	}
	paint := func(style term.Style, text string) string {
		if style != term.Dim {
			t.Errorf("%s is painted in another style", text)
		}
		return "<" + text + ">"
	}
	want := "<2026-11-29>\n     7  <23:59:59>  reader·1: started\n<2026-11-30>\n1234567  <00:00:00>  reader·2: ended\n     9  <00:00:01>  you edited of reader·1\n"
	if diff := cmp.Diff(want, NewDescriber(moments, &runs.Info{}).DescribeMoments(moments, paint)); diff != "" {
		t.Error(diff)
	}
}

// A text on a line is one line without control characters, and is cut in whole characters.
func TestLinesOfTexts(t *testing.T) {
	for text, want := range map[string]string{
		" a\n\tb  c ": "a b c", strings.Repeat("é", 160): strings.Repeat("é", 160),
		strings.Repeat("é", 161): strings.Repeat("é", 160) + "...", "": "",
	} {
		if got := ShortenLine(text); got != want {
			t.Errorf("%q is %q", text, got)
		}
	}
	for text, want := range map[string]string{
		"": `""`, " a ": `"a"`, "a\nb": `"a …"`, strings.Repeat("a", 60): `"` + strings.Repeat("a", 60) + `"`,
		strings.Repeat("a", 70) + "\nb": `"` + strings.Repeat("a", 60) + `…"`,
	} {
		if got := QuoteText(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
	for took, want := range map[time.Duration]string{
		0: "0.0 s", 140 * time.Millisecond: "0.1 s", 9900 * time.Millisecond: "9.9 s", 9949 * time.Millisecond: "9.9 s", 9960 * time.Millisecond: "10 s", 10 * time.Second: "10 s",
		59999 * time.Millisecond: "59 s", time.Minute: "1m00s", 2 * time.Hour: "2h00m",
	} {
		if got := FormatSeconds(took); got != want {
			t.Errorf("%v is %s, want %s", took, got, want)
		}
	}
	for args, want := range map[string]string{
		`{"command":"make\ntest"}`: "make …", `{"path":"","url":"http://a"}`: "http://a", `{"a":1}`: `{"a":1}`, `{}`: "", `[1]`: "[1]", `{"command":7,"path":"p"}`: "p", "broken": "broken",
	} {
		if got := DescribeCall(&runs.ToolCall{
			Tool: "t", Args: json.RawMessage(args),
		}); got != strings.TrimSpace("t "+want) {
			t.Errorf("%s is %s", args, got)
		}
	}
}

// What a script has printed is shown by its lines, and an outcome without a text adds nothing.
func TestOutcomesOfCalls(t *testing.T) {
	for _, tt := range []struct{ tool, status, outcome, want string }{
		{"t", "done", `{"output":"a\nb"}`, "ok: a\n    b"},
		{"t", "done", `{"output":"1\n2\n3\n4\n5\n"}`, "ok: 1\n    2\n    3\n    … 2 more lines"},
		{"t", "done", `{"output":" \n"}`, "ok"}, {"t", "done", " \n", "ok"},
		{"t", "done", `{"other":1}`, `ok: {"other":1}`}, {"t", "failed", `{"stderr":"a\nb\n"}`, "failed: b"},
		{"t", "failed", `{"stderr":"","tool_call_error":"no"}`, "failed: no"}, {"t", "failed", "", "failed"},
		{"t", "failed", "gone", "failed: gone"}, {"t", "unrecorded", "", "its outcome is not recorded"},
	} {
		want := "● t {}\n  " + tt.want
		if diff := cmp.Diff(want, describeCallLines(&runs.ToolCall{
			Tool: tt.tool, Status: tt.status, Outcome: tt.outcome,
		})); diff != "" {
			t.Errorf("%s: %s", tt.outcome, diff)
		}
	}
}

// A moment is at the nearest node that the picture shows, and what has failed is where the picture shows it.
func TestPlacesOfMoments(t *testing.T) {
	s := graph.Structure{Nodes: []graph.NodeInfo{
		{Name: "each"}, {Name: "one"},
		{Name: "boss", Child: &graph.Structure{Nodes: []graph.NodeInfo{{Name: flow.PictureModel}, {Name: flow.PictureTools}, {Name: "helper"}}}},
	}}
	p := NewPlaces(&s)
	for node, want := range map[string]string{
		"each/one[2]": "one", "each/two[2]": "each", "boss/team/agent_helper_00000001": "boss/helper",
		"boss/team/agent_other_00000001": "boss", "boss/deep/er": "boss", "none": "", "": "",
	} {
		if got := p.FindMoment(&runs.Moment{Node: node}); got != want {
			t.Errorf("%s is at %q, want %q", node, got, want)
		}
	}
	reply := record(journal.KindEffect, "boss", func(m *runs.Moment) { m.Reply = &flow.Reply{} })
	call := record(journal.KindFailure, "boss", func(m *runs.Moment) {
		m.Call, m.Failure, m.FailedNodes = &runs.ToolCall{}, "no", []string{"each/one[1]", "none", "boss"}
	})
	if got := p.FindMoment(&reply) + " " + p.FindMoment(&call); got != "boss/"+flow.PictureModel+" boss/"+flow.PictureTools {
		t.Error(got)
	}
	if diff := cmp.Diff([]string{"one", "boss", "boss/" + flow.PictureTools}, p.FindFailed(&call)); diff != "" {
		t.Error(diff)
	}
}

// A node that has failed is shown as failed until it starts again, and a node of a parallel step ends with its task.
func TestPictureOfFailures(t *testing.T) {
	s := graph.Structure{
		Nodes: []graph.NodeInfo{{Name: "a"}, {Name: "b"}, {Name: "c"}}, Edges: []graph.EdgeInfo{{From: "a", To: "b"}},
	}
	start := moment(0, journal.KindStart, "", "")
	start.Next = []string{"a", "c"}
	task := moment(3, journal.KindTask, "", "c")
	end := moment(5, journal.KindEnd, "", "")
	end.What, end.FailedNodes = "failed", []string{"a"}
	story := []runs.Moment{start, task, end}
	d := &runs.Detail{
		Info:     runs.Info{Run: "r", Agent: "x", Status: "failed"},
		Snapshot: &history.Snapshot{RunInfo: history.RunInfo{Status: graph.Failed}},
	}
	note := func() map[string]draw.Note {
		var o draw.Options
		AddRun(&o, &s, d, story)
		return o.Run
	}
	want := map[string]draw.Note{"a": {Status: "failed", Text: "failed"}, "c": {Status: "done", Text: "3.0 s"}}
	if diff := cmp.Diff(want, note()); diff != "" {
		t.Error(diff)
	}
	claim := moment(100, journal.KindClaim, "", "")
	story = append(story, claim, step(102, "", "", []string{"a", "c"}, []string{"b"}))
	d.Status, d.Snapshot.Status = runs.Running, graph.Running
	want = map[string]draw.Note{
		"a": {Status: "done", Text: "7.0 s · 1 failed"}, "b": {Status: "running", Text: "running"},
		"c": {Status: "done", Text: "3.0 s"},
	}
	if diff := cmp.Diff(want, note()); diff != "" {
		t.Errorf("after it continued: %s", diff)
	}
}
