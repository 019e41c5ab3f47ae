package agent

import (
	"cmp"
	"context"
	"fmt"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// Continue sends a model a reminder when it stops although its todo list has
// open items, and gives it the tools of this list: do not add TodoTools. It
// applies to every run, including child runs and runs without a terminal.
type Continue struct {
	// Max is the highest number of reminders in one turn. Clearing the list or
	// summarizing the conversation does not reset the count. 0: no reminders,
	// and no todo tools.
	Max    int
	Prompt string // text before the list; empty: DefaultContinuation
	Plain  bool   // the system prompt does not mention the todo tools
}

// DefaultContinuation is the reminder for a model that stops early.
const DefaultContinuation = `[system reminder: your todo list still has open items]
1. Mark an item as done only when you have checked its result.
2. If an item covers several steps, split it into small ones before you begin.
3. Do one step of one item at a time.
4. Continue with the next open item now, by calling tools. Do not announce it, do it.
5. If an item cannot be done or is no longer needed, say why and mark it as done or clear the list.`

// TodoInstructions is the part of the system prompt about the todo tools.
// Continue.Plain leaves it out.
const TodoInstructions = `## Todo list

Work that takes several steps is planned on a todo list.
- todo__init starts a list with its goal; todo__add adds one item; todo__done marks one as done; todo__update changes one; todo__list shows all; todo__clear removes the list.
- Plan before you begin: add one item for each step.
- Mark each item as done as soon as it is, one by one, never several at the end.
- When the user changes direction, clear the list and plan again.
- If you stop while items are open, you get a reminder to continue.`

// OpenItems returns the warning that a model ended its turn with open items on
// its todo list after the highest number of reminders.
func OpenItems(open, continued int) string {
	return fmt.Sprintf("open items on the todo list: %d, after %d automatic continuations, which is the limit (max_auto_continues)", open, continued)
}

// shouldContinue reports whether the model gets a reminder.
func (c *Continue) shouldContinue(s graph.State) bool {
	return Continued.Get(s) < c.Max && Todo.Get(s).Open() > 0 && !WasInterrupted(s) && !IsCompaction(s)
}

// continueNode returns the node that appends the reminder.
func (c Continue) continueNode(name string) graph.Node {
	return graph.Node{Name: name, Kind: "continue", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
		prompt := cmp.Or(c.Prompt, DefaultContinuation)
		list := Todo.Get(s)
		count := Continued.Get(s) + 1
		graph.Emit(ctx, ContinuationSent{Count: count, Max: c.Max, Open: list.Open()})
		return graph.Put(Continued.Set(count), Messages.Set([]Entry{stampEntry(ctx, Entry{Message: llm.User(prompt + "\n\n" + list.String()), By: name})})), nil
	}}
}
