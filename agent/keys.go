// Size: the package's exported names are one vocabulary. Half of them are keys,
// constants and the types of events; the rest are the parts of a conversation, which
// a graph of one's own takes one by one, and which share what is not exported.

package agent

import (
	"raddle.dev/graph"
	"raddle.dev/llm"
)

// The keys beside Messages. Nodes of one graph share them.
var (
	// Spent is what models and tools have cost since the turn began.
	Spent = graph.Fold("spent", func(old Spend, _ bool, add Spend) (Spend, error) { return old.add(add), nil })
	// Grants lists what a person has allowed for the rest of the turn: see Decision.Grant.
	Grants = graph.Append[string]("grants")
	// Todo is the list that the todo tools keep. It outlives the turn.
	Todo = graph.Last[TodoList]("todo")
	// Continued counts the continuations of the turn: see Continue.
	Continued = graph.Last[int]("continued")
	// Views says, for each model node, from where on it sees the conversation.
	Views = graph.Merge[string, View]("views")
	// UserInput is what the user says, for the model node or agent that comes next:
	// it becomes part of the conversation there, so that nodes before it can still
	// change it.
	UserInput = graph.Fold("user_input", func(_ string, _ bool, text string) (string, error) { return text, nil })
	// OneShots holds messages for one request only: see OneShot.
	OneShots = graph.Merge[string, []llm.Message]("one_shots")
	// Overrides is what a turn changes of the configuration of its model nodes, by
	// path: see Override.
	Overrides = graph.Fold("overrides", layer)
)

// Keys lists the keys that the nodes of this package need, for Def.Keys.
func Keys() []graph.AnyKey {
	return []graph.AnyKey{Messages, Spent, Grants, Todo, Continued, Views, UserInput, OneShots, Overrides}
}

// Turn is the writes that begin a turn with what the user says: the first input
// of a run, on a new thread or on one whose last run is over. Budgets,
// continuations and what was allowed for a turn begin anew, and inputs and
// overrides of the turn before are gone: set those of this one behind it. For a thread whose
// last run is not over there is Next.
func Turn(text string) []graph.Write { return TurnWith(llm.User(text)) }

// TurnWith is Turn for a message with images, files or several texts.
func TurnWith(m llm.Message) []graph.Write { return append(Renew(), Append(m)) }

// TurnInput is Turn for a graph whose nodes work on what the user says before a
// model reads it: the text is in UserInput, and not yet in the conversation. With
// Next take Turn: only who speaks in the conversation keeps calls that are left from
// being made.
func TurnInput(text string) []graph.Write { return append(Renew(), UserInput.Set(text)) }

// Renew is the writes of Turn without a message, for graphs whose first node says
// what the user says.
func Renew() []graph.Write {
	return []graph.Write{Spent.Reset(Spend{}), Grants.Reset(nil), Continued.Reset(0),
		UserInput.Reset(""), OneShots.Reset(nil), Overrides.Reset(nil)}
}
