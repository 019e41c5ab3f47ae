package waterfall_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/report/waterfall"
	"raddle.dev/internal/storage/runs"
)

var start = time.Unix(1_800_000_000, 0)

// after returns a time of the run, in milliseconds after its start.
func after(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

// record returns a moment of a kind.
func record(kind journal.Kind, at int) runs.Moment {
	m := runs.Moment{}
	m.Kind = kind
	m.Time = after(at)
	m.Seq = int64(at + 1)
	return m
}

// effect returns a moment of an effect of a task that worked from a time to another one.
func effect(frame, task, node, name string, from, to int) runs.Moment {
	m := record(journal.KindEffect, to)
	m.Path = frame
	m.ID = graph.EffectID{Task: task, Name: name, Call: "0"}.String()
	m.Node = node
	m.Effect = name
	m.Took = time.Duration(to-from) * time.Millisecond
	m.Timing = history.Timing{Took: m.Took}
	if name == "model" {
		m.Reply = &flow.Reply{Model: "m-1"}
	}
	return m
}

// draw returns a chart as lines: each lane with its spans, and a star for those of the chain.
func draw(c *waterfall.Chart) string {
	var b strings.Builder
	for _, l := range c.Lanes {
		fmt.Fprintf(&b, "%s%q %v-%v:", strings.Repeat("  ", l.Depth), l.Path, l.Start, l.End)
		for _, s := range l.Spans {
			fmt.Fprintf(&b, " %s %v-%v", s.What, s.Start, s.End)
			for mark, is := range map[string]bool{"*": s.Critical, "!": s.Failed} {
				if is {
					b.WriteString(mark)
				}
			}
		}
		b.WriteString("\n")
	}
	for _, f := range c.Folds {
		fmt.Fprintf(&b, "fold %v-%v %s\n", f.Start, f.End, f.Why)
	}
	fmt.Fprintf(&b, "%v of %v: %s", c.Worked, c.Total, c.Longest)
	return b.String()
}

// Fifty workers work at the same time in lanes of their own; the chain has the slowest one, and what came before and after.
func TestParallelWorkers(t *testing.T) {
	moments := []runs.Moment{record(journal.KindStart, 0), effect("", "0.plan.0", "plan", "script", 10, 200)}
	for i := 1; i <= 50; i++ {
		end := 500 + 10*i
		if i == 48 {
			end = 2300
		}
		node := fmt.Sprintf("w%d", i)
		moments = append(moments, effect("", fmt.Sprintf("1.%s.0", node), node, "model", 202, end))
	}
	moments = append(moments, effect("", "2.join.0", "join", "script", 2301, 2600), record(journal.KindEnd, 2601))
	c := waterfall.New(moments, time.Time{})
	if len(c.Lanes) != 52 || c.Longest != "2.1 of 2.6 s: w48, model m-1" {
		t.Errorf("%d lanes; %q", len(c.Lanes), c.Longest)
	}
	var critical []string
	for _, l := range c.Lanes {
		for _, s := range l.Spans {
			if s.Critical {
				critical = append(critical, l.Path)
			}
			if strings.HasPrefix(l.Path, "w") && s.Start != 202 {
				t.Errorf("%s begins at %v", l.Path, s.Start)
			}
		}
	}
	if d := cmp.Diff([]string{"plan", "w48", "join"}, critical); d != "" {
		t.Error(d)
	}
}

// Of a branch with several calls, what another branch did at the same time is not in the chain, even if it ended just before.
func TestChainStaysInItsTask(t *testing.T) {
	c := waterfall.New([]runs.Moment{
		record(journal.KindStart, 0),
		effect("0.map.0/", "0.one.0", "map/one", "model", 0, 1000),
		effect("0.map.0/", "0.one.1", "map/one[1]", "model", 0, 500),
		effect("0.map.0/", "0.one.0", "map/one", "script", 1100, 2000),
		effect("0.map.0/", "0.one.1", "map/one[1]", "model", 510, 1099),
		record(journal.KindEnd, 2000),
	}, time.Time{})
	want := `"map" 0-2000:
  "map/one" 0-2000: model 0-1000* script 1100-2000*
  "map/one[1]" 0-1099: model 0-500 model 510-1099
2000 of 2000: 1.0 of 2.0 s: map/one, model m-1; 900 ms: map/one, script`
	if d := cmp.Diff(want, draw(c)); d != "" {
		t.Error(d)
	}
}

// An item of a map that waits for room comes after the one that made it.
func TestChainOfQueuedItems(t *testing.T) {
	c := waterfall.New([]runs.Moment{
		record(journal.KindStart, 0),
		effect("0.map.0/", "0.one.0", "map/one", "script", 0, 300),
		effect("0.map.0/", "0.one.1", "map/one[1]", "script", 0, 900),
		effect("0.map.0/", "0.one.2", "map/one[2]", "script", 301, 1500),
		record(journal.KindEnd, 1500),
	}, time.Time{})
	want := `"map" 0-1500:
  "map/one" 0-300: script 0-300*
  "map/one[1]" 0-900: script 0-900
  "map/one[2]" 301-1500: script 301-1500*
1500 of 1500: 1.2 of 1.5 s: map/one[2], script; 300 ms: map/one, script`
	if d := cmp.Diff(want, draw(c)); d != "" {
		t.Error(d)
	}
}

// The time for which a question was open, and that in which no process worked, is folded; what worked meanwhile is not.
func TestFolds(t *testing.T) {
	question := record(journal.KindQuestion, 1000)
	question.Path = "1.ask.0/"
	question.Question = &graph.Question{ID: "ask"}
	question.Asked = "q"
	question.Node = "ask"
	answer := record(journal.KindAnswer, 601_000)
	answer.Path = question.Path
	answer.Asked = "q"
	moments := []runs.Moment{
		record(journal.KindStart, 0),
		effect("", "0.draft.0", "draft", "model", 0, 1000),
		question,
		effect("", "1.side.0", "side", "script", 1001, 5000),
		record(journal.KindEnd, 5000),
		answer,
		record(journal.KindClaim, 602_000),
		effect("", "2.send.0", "send", "script", 602_000, 602_500),
		record(journal.KindEnd, 602_500),
	}
	want := `"draft" 0-1000: model 0-1000*
"ask" 1000-601000: question 1000-601000*
"side" 1001-5000: script 1001-5000
"send" 602000-602500: script 602000-602500*
fold 5000-602000 question
5500 of 602500: 1.0 of 5.5 s: draft, model m-1; 10m00s more: questions were open`
	if d := cmp.Diff(want, draw(waterfall.New(moments, time.Time{}))); d != "" {
		t.Error(d)
	}
	open := waterfall.New(moments[:5], after(60_000))
	if q := open.Lanes[1].Spans[0]; !q.Open || q.End != 60_000 || len(open.Folds) != 1 {
		t.Errorf("a question that is open: %+v, folds %v", q, open.Folds)
	}
}

// What an earlier version has recorded without times is there, counted, and not in a chain; failures and attempts are marked.
func TestUntimedAndRetried(t *testing.T) {
	old := effect("", "0.old.0", "old", "model", 100, 100)
	tried := effect("", "1.new.0", "new", "model", 100, 2100)
	tried.Timing.Retries = 2
	tried.Timing.Waited = 700 * time.Millisecond
	tried.Timing.First = 1500 * time.Millisecond
	failed := effect("", "2.bad.0", "bad", "script", 2100, 2200)
	failed.Kind = journal.KindFailure
	c := waterfall.New([]runs.Moment{record(journal.KindStart, 0), old, tried, failed}, time.Time{})
	if c.Untimed != 1 || !c.Lanes[0].Spans[0].Untimed || c.Lanes[0].Spans[0].Critical {
		t.Errorf("untimed: %+v", c.Lanes[0])
	}
	if s := c.Lanes[1].Spans[0]; s.Retries != 2 || s.Waited != 700 || s.First != 1500 || s.Failed {
		t.Errorf("tried again: %+v", s)
	}
	if s := c.Lanes[2].Spans[0]; !s.Failed || s.What != waterfall.Script {
		t.Errorf("failed: %+v", s)
	}
	if got := waterfall.New(nil, time.Time{}); len(got.Lanes) != 0 || got.Longest != "" {
		t.Errorf("nothing: %+v", got)
	}
}
