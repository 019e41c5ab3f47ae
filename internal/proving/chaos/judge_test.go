package chaos

import (
	"strings"
	"testing"
	"time"

	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// moment returns a time of the history of the tests: so many seconds after its beginning.
func moment(seconds int) time.Time { return time.Unix(1_900_000_000+int64(seconds), 0) }

// The keys of the two effects of a run, as graph.EffectKey makes them.
const (
	payKey  = "r1/0.pay.0/script/0"
	mailKey = "r1/1.mail.0/script/0"
)

// newEvidence returns what is seen of a run that a fault hurts and that ends well: its server is killed while it mails,
// and another one mails again.
func newEvidence() Evidence {
	result := func(seq int64, at int, id string) history.Entry {
		return history.Entry{Seq: seq, Time: moment(at), Kind: journal.KindEffect, ID: id, What: id}
	}
	h := History{
		Run: "r1", User: "u1", Status: "done", Ended: true,
		Entries: []history.Entry{
			{Seq: 1, Time: moment(0), Kind: journal.KindStart},
			result(2, 2, "0.pay.0\x00script\x000"),
			{Seq: 3, Time: moment(2), Kind: journal.KindStep},
			{Seq: 4, Time: moment(5), Kind: journal.KindClaim},
			{Seq: 5, Time: moment(5), Kind: journal.KindAnswer},
			result(6, 7, "1.mail.0\x00script\x000"),
			{Seq: 7, Time: moment(7), Kind: journal.KindEnd},
		},
		Sums:    map[int64]uint64{1: 11, 2: 12, 3: 13, 4: 14, 5: 15, 6: 16, 7: 17},
		Seen:    []Seen{{1, 11}, {2, 12}, {3, 13}, {4, 14}},
		Answers: 1,
	}
	line := func(at int, key string, server int, end bool) Effect {
		node := map[string]string{payKey: "pay", mailKey: "mail"}[key]
		return Effect{At: moment(at).UnixMicro(), Key: key, What: "the script", Node: node, Server: server, End: end}
	}
	return Evidence{
		Starts: []Start{{User: "u1", Run: "r1"}, {User: "u2"}},
		Runs:   []History{h},
		Effects: []Effect{
			line(1, payKey, 0, false), line(2, payKey, 0, true),
			line(3, mailKey, 0, false), // killed
			line(6, mailKey, 1, false), line(7, mailKey, 1, true),
		},
	}
}

// TestJudgeAcceptsWhatIsRight counts what ended well, and the effect that began again.
func TestJudgeAcceptsWhatIsRight(t *testing.T) {
	v := Judge(newEvidence())
	if !v.IsClean() {
		t.Errorf("%+v", v)
	}
	if v.Accepted != 1 || v.Unconfirmed != 1 || v.Done != 1 || v.Waiting != 0 || v.Effects != 2 {
		t.Errorf("%+v", v)
	}
	if len(v.InDoubt) != 1 || v.InDoubt[0].Times != 1 || v.InDoubt[0].Node != "mail" {
		t.Errorf("in doubt: %+v, want the mail once", v.InDoubt)
	}
}

// TestJudgeFinds plants one fault at a time, and expects exactly one finding of its kind.
func TestJudgeFinds(t *testing.T) {
	cases := []struct {
		name, kind, says string
		plant            func(e *Evidence)
	}{
		{"a run that is not there", "lost", "has no such run", func(e *Evidence) {
			e.Starts = append(e.Starts, Start{User: "u3", Run: "r3"})
		}},
		{"a record that vanished at the end", "lost", "record 8 was in the journal", func(e *Evidence) {
			e.Runs[0].Seen = append(e.Runs[0].Seen, Seen{8, 18})
		}},
		{"a record that was replaced", "lost", "record 4 is another one", func(e *Evidence) {
			e.Runs[0].Sums[4] = 99
		}},
		{"a gap", "lost", "between the records 2 and 4", func(e *Evidence) {
			h := &e.Runs[0]
			h.Entries = append(h.Entries[:2:2], h.Entries[3:]...)
		}},
		{"an answer that is not recorded", "lost", "2 answers were accepted, and the journal has 1", func(e *Evidence) {
			e.Runs[0].Answers = 2
		}},
		{"two runs of one start", "repeated", "several runs: r1, r2", func(e *Evidence) {
			e.Runs = append(e.Runs, History{Run: "r2", User: "u1", Ended: true, Status: "done"})
		}},
		{"two results of one effect", "repeated", "record 8 is a second result", func(e *Evidence) {
			h := &e.Runs[0]
			again := h.Entries[1]
			again.Seq = 8
			h.Entries = append(h.Entries, again)
		}},
		{"an effect after its record", "repeated", "server 2 began the script", func(e *Evidence) {
			e.Effects = append(e.Effects, Effect{At: moment(4).UnixMicro(), Key: payKey, What: "the script", Node: "pay", Server: 1})
		}},
		{"a run that no one continues", "stranded", "it is crashed; its newest record is 7 (end)", func(e *Evidence) {
			h := &e.Runs[0]
			h.Ended = false
			h.Status = "crashed"
		}},
		{"a run at its time limit", "failed", "it is timed-out", func(e *Evidence) { e.Runs[0].Status = "timed-out" }},
		{"a run that has cleaned up", "failed", "it is cleaned-up", func(e *Evidence) { e.Runs[0].Status = "cleaned-up" }},
		{"a run that failed", "failed", "connection refused", func(e *Evidence) {
			h := &e.Runs[0]
			h.Status = "failed"
			h.Reason = "connection refused"
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := newEvidence()
			c.plant(&e)
			v := Judge(e)
			for kind, list := range map[string][]Finding{"lost": v.Lost, "repeated": v.Repeated, "stranded": v.Stranded, "failed": v.Failed} {
				switch {
				case kind != c.kind && len(list) > 0:
					t.Errorf("%s: %+v, want none", kind, list)
				case kind == c.kind && (len(list) != 1 || !strings.Contains(list[0].What, c.says)):
					t.Errorf("%s: %+v, want one with %q", kind, list, c.says)
				}
			}
			if v.IsClean() {
				t.Error("the verdict is clean")
			}
		})
	}
}

// TestJudgeDoubts counts what began again before it had a record, and nothing else.
func TestJudgeDoubts(t *testing.T) {
	cases := []struct {
		name  string
		lines []Effect // without their key
		times int
	}{
		{"once", []Effect{{At: 1}, {At: 2, End: true}}, 0},
		{"an error, and tried again", []Effect{{At: 1}, {At: 2, End: true, Failed: true}, {At: 3}, {At: 4, End: true}}, 0},
		{"killed, and made again", []Effect{{At: 1}, {At: 3}, {At: 4, End: true}}, 1},
		{"killed after its end and before its record", []Effect{{At: 1}, {At: 2, End: true}, {At: 3}}, 1},
		{"killed twice", []Effect{{At: 1}, {At: 2}, {At: 3}, {At: 4, End: true}}, 2},
		{"in any order", []Effect{{At: 4, End: true}, {At: 3}, {At: 1}}, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var e Evidence
			for _, line := range c.lines {
				line.Key = "r1/0.a.0/script/0"
				e.Effects = append(e.Effects, line)
			}
			times := 0
			for _, d := range Judge(e).InDoubt {
				times += d.Times
			}
			if times != c.times {
				t.Errorf("%d in doubt, want %d", times, c.times)
			}
		})
	}
}
