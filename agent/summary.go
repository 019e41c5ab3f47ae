package agent

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// defaultSummary is the prompt for a summary.
const defaultSummary = `You summarize the beginning of a conversation between a user, an assistant and its tools, so that the assistant can continue without it.
Keep what the user wants and has decided, what was found out, what was changed and where (names, paths, numbers to the letter), and what is still open.
Leave out greetings and what no longer matters. Write plain text, without an introduction.`

const (
	summaryShare  = 8    // 1/8 of the room is for the summary
	leastSummary  = 200  // tokens
	longestQuoted = 1000 // tokens of one summarized message
)

// fitRequest leaves out what does not fit in the window. A summary needs one more
// model call; if that fails, a note replaces what is left out.
func (st *thinkStep) fitRequest(ctx context.Context, s graph.State, f *requestFitter) error {
	at, crowded := f.findSummaryStart()
	switch {
	case !f.isWithinLimit() && crowded:
		at = max(at, f.findCutLine())
	case !f.isWithinLimit():
		at = f.findCutLine()
	case !crowded:
		return nil
	}
	if at > f.from {
		was := f.view.Summary
		from := f.from
		f.moveViewTo(at)
		if f.view.Left > 0 && st.think.Window.Summary != nil {
			text, err := st.summariseLines(ctx, s, f, from, was)
			if err != nil {
				return err
			}
			f.view.Summary = text
		}
	}
	if graph.IsEmitEnabled(ctx) {
		graph.Emit(ctx, WindowShortened{Messages: f.view.Left, Tokens: f.scaleTokens(f.estimateTokens(f.from)), Limit: f.requestLimit(), Summary: f.view.Summary != ""})
	}
	return nil
}

// summariseLines returns a summary of the lines from the given one up to the start
// of the view, and of what was left out before them: was is its summary. Without
// one, it is part of the lines.
func (st *thinkStep) summariseLines(ctx context.Context, s graph.State, f *requestFitter, from int, was string) (string, error) {
	if err := st.think.Budget.checkSpend(Spent.Get(s).add(st.spent)); err != nil {
		return "", err
	}
	if was == "" {
		from = 0
	}
	most := max(f.requestLimit()/summaryShare, leastSummary)
	prompt := cmp.Or(st.think.Window.Prompt, defaultSummary)
	text := formatTranscript(f.lines[from:f.from], was, f.requestLimit()*percent/max(f.factor, 1)/2)
	req := llm.Request{System: prompt, MaxTokens: most, Messages: []llm.Message{llm.User(text)}}
	reply, err := graph.Do(ctx, "summary", func(ctx context.Context) (llm.Reply, error) {
		ctx, release := Interruptible(ctx)
		defer release()
		r, err := llm.Generate(ctx, st.think.Retry.WrapModel(st.think.redactModel(st.think.Budget.MeterModel(st.think.Window.Summary)), false), req)
		if err == nil {
			graph.Emit(ctx, SummaryDone{r.Model, r.Usage})
		}
		return r, err
	})
	var failure *llm.Error
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil && IsInterrupted(ctx):
		return "", ErrInterrupted
	case errors.As(err, &failure) && failure.Class != llm.Auth:
		graph.Emit(ctx, Warning{Text: "the messages that were left out could not be summarized: " + failure.Error()})
		return was, nil
	case err != nil:
		return "", err
	}
	st.spent = st.spent.add(st.think.Budget.replySpend(&reply))
	return truncateMiddle(strings.TrimSpace(reply.Text()), 2*most), nil
}

// formatTranscript returns messages as one text to be summarized, of about most
// tokens.
func formatTranscript(lines []foldedLine, was string, most int) string {
	quoted := longestQuoted
	if n := len(lines); n > 0 {
		quoted = max(smallest, min(quoted, most/n))
	}
	var b strings.Builder
	if was != "" {
		b.WriteString("Summary of what came before:\n" + was + "\n\n")
	}
	for _, l := range lines {
		for _, p := range l.message.Parts {
			switch p := p.(type) {
			case llm.Text:
				b.WriteString(string(l.message.Role) + ": " + truncateMiddle(p.Text, quoted) + "\n")
			case llm.ToolCall:
				b.WriteString("call of " + p.Name + ": " + truncateMiddle(string(p.Args), quoted) + "\n")
			case llm.ToolResult:
				b.WriteString("result of " + p.Name + ": " + truncateMiddle(llm.Message{Parts: p.Content}.Text(), quoted) + "\n")
			}
		}
	}
	return truncateMiddle(b.String(), most)
}
