package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// ErrInterrupted is the cause of a context that ended because a person interrupted the turn.
var ErrInterrupted = errors.New("the user interrupted the turn")

const (
	// StopInterrupted is the reason of a reply that a person cut off: its text is what had
	// arrived. It ends the turn.
	StopInterrupted llm.StopReason = "interrupted"
	// InterruptedText is the text of such a reply if nothing had arrived, or if tools were
	// running: providers require that a reply follows a message.
	InterruptedText = "[Interrupted by the user.]"
	// InterruptReason refuses a question so that the turn ends: see graph.Answer.
	InterruptReason = "the user interrupted the turn"
)

// TurnInterrupted is emitted when a turn ends because a person interrupted it.
type TurnInterrupted struct{}

// EventType returns "interrupted".
func (TurnInterrupted) EventType() string { return "interrupted" }

// An interruption ends the turn of the agents in a context.
type interruption struct {
	stop <-chan struct{} // closed by the caller; nil: never
	done chan struct{}   // closed when the journal says that the turn was interrupted

	mu   sync.Mutex // guards the fields below
	read bool       // the journal was read
}

type interruptionKey struct{}

// WithInterrupt returns a context for a drive of an agent's graph. Closing stop ends the
// agent's turn at once, as if the model had finished: the text that has arrived becomes its
// reply, tools are cancelled and every call gets an outcome, and no further request is made. The run is
// Done, and a new turn can be started. A drive that resumes a turn which an earlier one interrupted
// ends it in the same way; stop may be nil then.
//
// Nodes that are not of this package are not affected. A run that waits is resumed with the answers
// of InterruptAnswers.
func WithInterrupt(ctx context.Context, stop <-chan struct{}) context.Context {
	return context.WithValue(ctx, interruptionKey{}, &interruption{stop: stop, done: make(chan struct{})})
}

// WithoutInterrupt returns a context in which an interruption of the turn has no effect. It is for the
// agents of a team: the lead ends them when its own turn ends.
func WithoutInterrupt(ctx context.Context) context.Context {
	return context.WithValue(ctx, interruptionKey{}, (*interruption)(nil))
}

func interruptionOf(ctx context.Context) *interruption {
	i, _ := ctx.Value(interruptionKey{}).(*interruption)
	return i
}

// Interruptible returns a context that ends with the cause ErrInterrupted when the turn is interrupted.
// The caller must call the returned function when the work is done.
func Interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	i := interruptionOf(ctx)
	run, cancel := context.WithCancelCause(ctx)
	if i == nil {
		return run, func() { cancel(nil) }
	}
	if isClosed(i.stop) || isClosed(i.done) {
		cancel(ErrInterrupted)
		return run, func() {}
	}
	left := make(chan struct{})
	go func() {
		select {
		case <-i.stop:
			cancel(ErrInterrupted)
		case <-i.done:
			cancel(ErrInterrupted)
		case <-left:
		}
	}()
	return run, sync.OnceFunc(func() {
		close(left)
		cancel(nil)
	})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// IsInterrupted reports whether the turn of the node that ctx belongs to was interrupted. If so, the
// journal says it before IsInterrupted returns: a drive that resumes the run ends the turn, too.
func IsInterrupted(ctx context.Context) bool {
	i := interruptionOf(ctx)
	if i == nil {
		return false
	}
	return i.check(ctx, isClosed(i.stop))
}

// markInterrupted records that the turn was interrupted.
func markInterrupted(ctx context.Context) {
	if i := interruptionOf(ctx); i != nil {
		i.check(ctx, true)
	}
}

// interruptFlag is the name of the shared value that says that a turn was interrupted.
const interruptFlag = "interrupted"

// IsInterruptRecord reports whether an effect records that a turn was interrupted. what is the effect's id, as
// [history.Entry] has it in ID.
func IsInterruptRecord(what string) bool {
	return graph.ParseEffectID(what).SharedName() == interruptFlag
}

// check reports whether the turn was interrupted, and records it if now is set.
func (i *interruption) check(ctx context.Context, now bool) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if isClosed(i.done) {
		return true
	}
	if i.read && !now {
		return false
	}
	flag, err := graph.Share[bool](ctx, interruptFlag)
	if err != nil {
		return now // outside of a node
	}
	known := false
	err = flag.Use(func(v *bool) bool {
		known = *v || now
		record := now && !*v
		*v = known
		return record
	})
	if i.read = true; known && err == nil { // if it cannot be recorded, the drive has failed
		close(i.done)
	}
	return known
}

// InterruptAnswers returns the answers that end an interrupted turn which waits: they refuse the open
// questions of the agent itself. Those of agents and tools below it need none. lead is the path of the agent's
// tools node.
func InterruptAnswers(open []graph.Question, lead string) []graph.Answer {
	var answers []graph.Answer
	for _, q := range open {
		if node, _, _ := strings.Cut(q.ID, "#"); node == lead {
			answers = append(answers, graph.Answer{ID: q.ID, Refused: InterruptReason})
		}
	}
	return answers
}

// refusalOf returns why a question gets no answer, or nil. If the reason is an interruption, the question
// does not matter any more, and the error stays as it is.
func refusalOf(err error) *graph.RefusedError {
	var refusal *graph.RefusedError
	if errors.As(err, &refusal) && refusal.Reason != InterruptReason {
		return refusal
	}
	return nil
}

// isInterruption reports whether a call returned an error because the turn was interrupted.
func isInterruption(err error) bool {
	var refusal *graph.RefusedError
	return errors.Is(err, ErrInterrupted) || errors.As(err, &refusal) && refusal.Reason == InterruptReason
}

// WasInterrupted reports whether the newest turn of a conversation was interrupted.
func WasInterrupted(s graph.State) bool { return EndsInterrupted(Messages.Get(s)) }

// EndsInterrupted reports whether the newest reply after what a person said is one that a person cut off.
func EndsInterrupted(entries []Entry) bool {
	for i := len(entries) - 1; i >= 0; i-- {
		switch e := &entries[i]; {
		case e.Op == OpClear || e.By == "" && e.Message.Role == llm.RoleUser:
			return false
		case e.Reply != nil:
			return e.Reply.Stop == StopInterrupted
		}
	}
	return false
}

// TurnText returns what the model has said last in the newest turn, or "" if that is nothing.
func TurnText(s graph.State) string {
	entries := Messages.Get(s)
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		if e.Op == OpClear || e.By == "" && e.Message.Role == llm.RoleUser {
			return ""
		}
		if text := e.Message.Text(); e.Message.Role == llm.RoleAssistant && strings.TrimSpace(text) != "" && !e.isPlaceholder() {
			return text
		}
	}
	return ""
}

// isPlaceholder reports whether an entry only says that the turn was interrupted.
func (e *Entry) isPlaceholder() bool {
	return e.Reply != nil && e.Reply.Stop == StopInterrupted && e.Message.Text() == InterruptedText
}

// interruptedEntry returns the reply that ends an interrupted turn of a model node.
func interruptedEntry(ctx context.Context, node, text string) Entry {
	return stampEntry(ctx, Entry{Message: interruptedReply(text).Message, By: node, Reply: &ReplyInfo{Stop: StopInterrupted}})
}

// interruptedReply returns the reply of a model that was cut off.
func interruptedReply(text string) llm.Reply {
	if text = strings.TrimRight(text, " \t\r\n"); text == "" {
		text = InterruptedText
	}
	return llm.Reply{Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: text}}}, Stop: StopInterrupted}
}

// A partialText is the text of a reply that has not ended.
type partialText struct{ strings.Builder }

type partialTextKey struct{}

// forgetPartialText removes what a request that failed has returned: another one is sent.
func forgetPartialText(ctx context.Context) {
	if t, ok := ctx.Value(partialTextKey{}).(*partialText); ok {
		t.Reset()
	}
}

// notMadeResult is the outcome of a call that was not made because the turn was interrupted.
var notMadeResult = tool.FailedResult("The user interrupted the turn before this call was made.")

// cutOutcome returns the outcome of a call that was interrupted. done is what it has returned.
func cutOutcome(t tool.Tool, args json.RawMessage, done tool.Result) tool.Result {
	r := tool.FailedResult("The user interrupted this call.")
	if !t.MayRepeat(args) {
		r = tool.FailedResult("The user interrupted this call. It may have been made in part; check before you repeat it.")
	}
	r.Changes = done.Changes
	r.Seen = done.Seen
	return r
}

// interruptCall returns the outcome of a call of an interrupted turn: the one that is recorded, if
// there is one.
func (st *actStep) interruptCall(ctx context.Context, c llm.ToolCall) (tool.Result, error) {
	t, ok := st.findTool(c.Name)
	if !ok || todoActions[t.Name] != nil {
		return st.emitDone(ctx, c, notMadeResult), nil
	}
	for try := 1; ; try++ {
		e := callEffect(t.Name, c.ID, try)
		m, ok, err := loadRecorded[callRecord](ctx, e.Name, e.Key)
		switch {
		case err != nil:
			return tool.Result{}, err
		case ok && m.Result != nil:
			st.addSpent(m.Spent)
			st.addSeen(m.Result.Seen)
			return m.outcome(), nil
		case ok:
			continue
		}
		e.InDoubt = graph.DoubtSkip
		m, err = graph.DoEffect(ctx, e, func(context.Context) (callRecord, error) {
			return callRecord{Result: &notMadeResult, Permission: st.refuseCall(byCall, t.Name, "was not called: a person interrupted the turn")}, nil
		})
		if err != nil {
			return tool.Result{}, err
		}
		if m.Result == nil { // an earlier drive was killed inside the call
			return st.emitDone(ctx, c, cutOutcome(t, c.Args, tool.Result{})), nil
		}
		return st.emitDone(ctx, c, *m.Result), nil
	}
}

// interruptCalls returns the outcomes of calls of an interrupted turn.
func (st *actStep) interruptCalls(ctx context.Context, calls []llm.ToolCall) ([]llm.Part, error) {
	parts := make([]llm.Part, len(calls))
	for i, c := range calls {
		r, err := st.interruptCall(ctx, c)
		if err != nil {
			return nil, err
		}
		parts[i] = r.MessagePart(c)
	}
	return parts, nil
}
