// Size: the exported names of this package are one vocabulary. Half of them are
// keys, constants and event types. The rest are the parts of a conversation,
// which your own graph can use one by one, and which share unexported code.

package agent

import (
	"raddle.dev/graph"
	"raddle.dev/llm"
)

// These are the keys in addition to Messages. The nodes of one graph share
// them.
var (
	// Spent is what models and tools have used since the turn started.
	Spent = graph.Fold("spent", func(old Spend, _ bool, add Spend) (Spend, error) { return old.add(add), nil })
	// Grants lists what a person allowed for the rest of the turn: see
	// Decision.Grant.
	Grants = graph.Append[string]("grants")
	// Todo is the list of the todo tools. It is kept when the turn ends.
	Todo = graph.Last[TodoList]("todo")
	// Continued counts the reminders of the turn: see Continue.
	Continued = graph.Last[int]("continued")
	// Views holds, for each model node, the part of the conversation that its
	// requests contain.
	Views = graph.Merge[string, View]("views")
	// UserInput is what the user says, for the next model node or agent. It
	// becomes part of the conversation there, so that earlier nodes can still
	// change it.
	UserInput = graph.Fold("user_input", func(_ string, _ bool, text string) (string, error) { return text, nil })
	// OneShots holds messages for one request only: see OneShot.
	OneShots = graph.Merge[string, []llm.Message]("one_shots")
	// Overrides is what a turn changes in the configuration of its model nodes,
	// by path: see Override.
	Overrides = graph.Fold("overrides", mergeOverrides)
	// Settled says which sources of tools are there (true) and which cannot be used (false): see Sources.
	Settled = graph.Merge[string, bool]("settled")
	// InUse holds the kits that the model has taken up: see Kits. It is kept when the turn ends.
	InUse = graph.Merge[string, Kit]("kits")
)

// Keys returns the keys that the nodes of this package need, for Def.Keys.
func Keys() []graph.AnyKey {
	return []graph.AnyKey{Messages, Spent, Grants, Todo, Continued, Views, UserInput, OneShots, Overrides, Settled, InUse}
}

// Turn returns the writes that start a turn with what the user says. Use them
// as the first input of a run, on a new thread or on a thread whose last run is
// over. They reset budgets, the count of reminders and what was allowed for a
// turn, and remove the inputs and overrides of the turn before: put those of
// the new turn after them. For a thread whose last run is not over, use Next.
func Turn(text string) []graph.Write { return TurnWith(llm.User(text)) }

// TurnWith is Turn for a message with images, files or several texts.
func TurnWith(m llm.Message) []graph.Write { return append(ResetTurn(), AppendMessages(m)) }

// TurnInput is Turn for a graph whose nodes work on what the user says before a
// model reads it: the text is in UserInput and not yet in the conversation.
// With Next, use Turn instead: only a message in the conversation prevents that
// unfinished calls are made.
func TurnInput(text string) []graph.Write { return append(ResetTurn(), UserInput.Set(text)) }

// ResetTurn returns the writes of Turn without a message, for graphs whose first
// node adds what the user says.
func ResetTurn() []graph.Write {
	return []graph.Write{Spent.Reset(Spend{}), Grants.Reset(nil), Continued.Reset(0),
		UserInput.Reset(""), OneShots.Reset(nil), Overrides.Reset(nil)}
}
