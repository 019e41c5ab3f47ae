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
)

// Keys lists the keys that the nodes of this package need, for Def.Keys.
func Keys() []graph.AnyKey {
	return []graph.AnyKey{Messages, Spent, Grants, Todo, Continued, Views}
}

// Turn is the writes that begin a turn with what the user says: the first input
// of a run, on a new thread or on one whose last run is over. Budgets,
// continuations and what was allowed for a turn begin anew. For a thread whose
// last run is not over there is Next.
func Turn(text string) []graph.Write { return TurnWith(llm.User(text)) }

// TurnWith is Turn for a message with images, files or several texts.
func TurnWith(m llm.Message) []graph.Write { return append(Renew(), Append(m)) }

// Renew is the writes of Turn without a message, for graphs whose first node says
// what the user says.
func Renew() []graph.Write {
	return []graph.Write{Spent.Reset(Spend{}), Grants.Reset(nil), Continued.Reset(0)}
}
