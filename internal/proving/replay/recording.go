package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/runfile"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/llm"
	"raddle.dev/team"
)

// Recording is what a run has recorded.
type Recording struct {
	Run      string
	Record   *runs.Record // of the last start
	segments []*segment
	files    []runfile.AgentFile
	threads  []runfile.Thread
}

// A segment is a part of a journal that one start, fork or edit begins.
type segment struct {
	thread string
	first  journal.Record // what begins it
	record *runs.Record
	run    string

	effects   map[string]effect // by path, task, name and key
	steps     map[stepID][]string
	writes    map[stepID][]byte // data of the records of the steps
	seqs      map[stepID]int64
	questions map[string]graph.Question
	answers   map[string]graph.Answer
	expired   map[string]bool // timers and questions that time has answered
	passed    time.Duration   // from the start until the last of them
	status    graph.Status    // of the last drive; Running: it did not record its end
	reason    string
	output    string
	records   int
	over      bool       // the run had ended where the segment begins
	media     []llm.Part // that it was started with
	compacts  bool       // it only summarizes the conversation
	talks     bool       // it is a conversation, not a graph
	team      bool       // agents worked at the same time
}

// effect is the result of an effect.
type effect struct {
	seq  int64
	name string
	data []byte
}

// stepID names a step: the path of its frame, and the number of the steps that the frame had done after it.
type stepID struct {
	path string
	step int
}

// NewRecording reads the journals of an exported run.
func NewRecording(ctx context.Context, f *runfile.File) (*Recording, error) {
	r := &Recording{Run: f.Run.Run, files: f.Agents, threads: f.Threads}
	for i := range f.Threads {
		if err := r.addThread(ctx, &f.Threads[i]); err != nil {
			return nil, fmt.Errorf("the journal of %s: %w", f.Threads[i].Name, err)
		}
	}
	r.Record = r.segments[len(r.segments)-1].record
	return r, nil
}

// addThread adds a thread in one pass over its records.
func (r *Recording) addThread(ctx context.Context, t *runfile.Thread) error {
	var s *segment
	reading := history.NewReading(t.Name)
	asked := map[string]string{} // ids of questions, by frame and key
	for i, rec := range t.Records {
		e, c, err := reading.Add(rec)
		if err != nil {
			return err
		}
		if rec.Kind == journal.KindStart || rec.Kind == journal.KindEdit || i == 0 {
			snap, err := reading.Snapshot(ctx, nil)
			if err != nil {
				return err
			}
			if s, err = newSegment(snap, rec); err != nil {
				return err
			}
			r.segments = append(r.segments, s)
		}
		if err := s.addRecord(rec, e, c, asked); err != nil {
			return err
		}
	}
	return nil
}

// newSegment returns a segment without records. snap is what the thread holds after the first one.
func newSegment(snap *history.Snapshot, first journal.Record) (s *segment, err error) {
	s = &segment{
		thread:    snap.Thread,
		first:     first,
		run:       snap.Run,
		status:    graph.Running,
		effects:   map[string]effect{},
		steps:     map[stepID][]string{},
		writes:    map[stepID][]byte{},
		seqs:      map[stepID]int64{},
		questions: map[string]graph.Question{},
		answers:   map[string]graph.Answer{},
		expired:   map[string]bool{},
	}
	if s.media, err = flow.StoredMedia(snap.Values); err != nil {
		return nil, err
	}
	s.record, err = runs.DecodeRecord(snap.Meta)
	if first.Kind != journal.KindStart {
		s.status = snap.Status
		s.over = snap.Status.Final()
	}
	return s, err
}

// addRecord adds a record with its line and content. asked has the ids of the questions of the thread.
func (s *segment) addRecord(r journal.Record, e history.Entry, c history.Content, asked map[string]string) (err error) {
	s.records++
	switch r.Kind {
	case journal.KindEffect:
		key, name := effectKeyOf(e)
		if key == "" || team.IsLog(e.ID) {
			s.team = s.team || key != ""
			return nil
		}
		s.effects[key] = effect{r.Seq, name, r.Data}
	case journal.KindStep:
		id := stepID{e.Path, e.Step}
		s.steps[id] = e.Next
		s.writes[id] = r.Data
		s.seqs[id] = r.Seq
	case journal.KindQuestion:
		asked[e.Path+c.Asked] = c.Question.ID
		s.questions[c.Question.ID] = *c.Question
	case journal.KindAnswer:
		var value any
		if c.Refused == "" {
			if err := json.Unmarshal(c.Answer, &value); err != nil {
				return fmt.Errorf("an answer: %w", err)
			}
		}
		id := asked[e.Path+c.Asked]
		if c.Expired {
			s.expired[id] = true
			s.passed = s.questions[id].Due.Sub(time.UnixMicro(s.first.Time))
			break
		}
		s.answers[id] = graph.Answer{ID: id, Value: value, Refused: c.Refused}
	case journal.KindStart, journal.KindClaim:
		s.status = graph.Running
		if r.Kind == journal.KindStart {
			s.talks = slices.Contains(c.Keys, agent.Overrides.Name())
			s.compacts = s.talks && s.record.Prompt == "" // every other turn has a prompt
		}
	case journal.KindEnd:
		s.status = runs.ParseStatus(e.What)
		s.reason = c.Reason
		s.output, err = outputOf(r)
	}
	return err
}

// outputOf returns the output in the record of an end.
func outputOf(r journal.Record) (string, error) {
	v, err := history.DecodeResult(r)
	return flow.OutcomeOf(graph.Result{Value: v}).Output, err
}

// effectKeyOf returns what identifies an effect in a run, and its name. The key is "" for what is shared by the whole
// run.
func effectKeyOf(e history.Entry) (key, name string) {
	id := graph.ParseEffectID(e.ID)
	if id.Task == "" {
		return "", ""
	}
	return e.Path + id.Task + "/" + id.Name + "/" + id.Call, id.Name
}

// currentKey returns the key of the effect that a context belongs to, in the form of effectKeyOf; "" outside of
// effects.
func currentKey(ctx context.Context) string {
	_, key, _ := strings.Cut(graph.EffectKey(ctx), "/")
	return key
}

// isOver reports whether the recorded run has finished the step that a task belongs to, or a step around it. path is
// that of the task.
func (s *segment) isOver(path string) bool {
	frame := ""
	for part := range strings.SplitSeq(path, "/") {
		number, _, _ := strings.Cut(part, ".")
		n, err := strconv.Atoi(number)
		if err != nil {
			return false
		}
		if _, over := s.steps[stepID{frame, n + 1}]; over {
			return true
		}
		frame += part + "/"
	}
	return false
}

// failureText returns the text with which a model call failed that has no recorded reply, as far as the step of its
// node wrote it to the state.
func (s *segment) failureText(path string) string {
	const prefix = `"LLM node failed: `
	task := path[strings.LastIndexByte(path, '/')+1:]
	number, _, _ := strings.Cut(task, ".")
	n, err := strconv.Atoi(number)
	data := string(s.writes[stepID{path[:len(path)-len(task)], n + 1}])
	at := strings.Index(data, prefix)
	var text string
	if err != nil || at < 0 || json.NewDecoder(strings.NewReader(data[at:])).Decode(&text) != nil {
		return "the recorded call failed"
	}
	return strings.TrimPrefix(text, strings.Trim(prefix, `"`))
}

var errEmpty = errors.New("the run has no journal")

// isTalk reports whether the effect is a reply in a conversation with tools.
func (e *effect) isTalk() bool { return flow.IsTalk(graph.EffectID{Name: e.name}.String()) }

// reply returns the recorded reply of a model.
func (e *effect) reply() (llm.Reply, error) {
	if e.isTalk() {
		var r llm.Reply
		if err := json.Unmarshal(e.data, &r); err != nil {
			return r, fmt.Errorf("the recorded reply of a model: %w", err)
		}
		return r, nil
	}
	r, err := flow.ReadReply(e.data)
	return llm.Reply{ID: r.ID, Model: r.Model, Usage: r.Usage, Stop: llm.StopEnd,
		Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: r.Text}}}}, err
}

// indentJSON returns a JSON text with a line for each value, so that a diff is small.
func indentJSON(text string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(text), "", "  ") != nil {
		return text
	}
	return b.String()
}
