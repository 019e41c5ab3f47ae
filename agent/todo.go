package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/tool"
)

// TodoList is the list of the todo tools.
type TodoList struct {
	Goal  string     `json:"goal"`
	Items []TodoItem `json:"todos"`

	changed bool
}

// TodoItem is one item of a TodoList.
type TodoItem struct {
	ID   int    `json:"id"`
	Desc string `json:"desc"`
	Done bool   `json:"done"`
}

// Open returns the number of items that are not done.
func (l TodoList) Open() (n int) {
	for _, i := range l.Items {
		if !i.Done {
			n++
		}
	}
	return n
}

// String returns the list as a reminder shows it.
func (l TodoList) String() string {
	var b strings.Builder
	if l.Goal != "" {
		b.WriteString("Goal: " + l.Goal + "\n")
	}
	fmt.Fprintf(&b, "Progress: %d/%d completed", len(l.Items)-l.Open(), len(l.Items))
	for _, i := range l.Items {
		mark := "○"
		if i.Done {
			mark = "✓"
		}
		fmt.Fprintf(&b, "\n  %s %d. %s", mark, i.ID, i.Desc)
	}
	return b.String()
}

func (l TodoList) clone() TodoList {
	l.Items = slices.Clone(l.Items)
	return l
}

// todoActions are the todo tools by name. They change only the list, and their
// results depend only on the list and the arguments: the act node runs them
// again instead of recording their results.
var todoActions = map[string]func(l *TodoList, args json.RawMessage) tool.Result{
	"todo__init":   withTodoArgs((*TodoList).startList),
	"todo__add":    withTodoArgs((*TodoList).addItem),
	"todo__done":   withTodoArgs((*TodoList).markDone),
	"todo__update": withTodoArgs((*TodoList).updateItem),
	"todo__list":   (*TodoList).listItems,
	"todo__clear":  (*TodoList).clearList,
}

// TodoTools returns the tools with which a model keeps a todo list. They work
// only in an act node: the list is the value of the key Todo.
func TodoTools() []tool.Tool {
	id := `"id":{"type":"integer","description":"The number of the item"}`
	specs := []struct{ name, doc, schema string }{
		{"todo__init", "Begin a new todo list, which replaces the old one.",
			`{"type":"object","properties":{"goal":{"type":"string","description":"What is to be reached in the end"}},"required":["goal"]}`},
		{"todo__add", "Add an item to the todo list. Returns its id.",
			`{"type":"object","properties":{"task":{"type":"string","description":"One thing to do"}},"required":["task"]}`},
		{"todo__done", "Mark an item of the todo list as done.",
			`{"type":"object","properties":{` + id + `},"required":["id"]}`},
		{"todo__update", "Change an item of the todo list: its text, or whether it is done.",
			`{"type":"object","properties":{` + id + `,"task":{"type":"string","description":"The new text"},"done":{"type":"boolean","description":"Whether it is done"}},"required":["id"]}`},
		{"todo__list", "Show the todo list.", `{"type":"object","properties":{}}`},
		{"todo__clear", "Remove the todo list.", `{"type":"object","properties":{}}`},
	}
	tools := make([]tool.Tool, len(specs))
	for i, s := range specs {
		tools[i] = tool.Tool{Name: s.name, Description: s.doc, Schema: json.RawMessage(s.schema), Effect: tool.ReadOnly,
			Polls: s.name == "todo__list", Run: failOutsideAct}
	}
	return tools
}

// failOutsideAct is the Run of tools that work only in an act node.
func failOutsideAct(context.Context, tool.Call) (tool.Result, error) {
	return tool.FailedResult("Todo tool failed: No active agent"), nil
}

type todoArgs struct {
	Goal string          `json:"goal"`
	Task string          `json:"task"`
	ID   json.RawMessage `json:"id"`
	Done *bool           `json:"done"`
}

func okResult(message string) tool.Result {
	return tool.JSONResult(struct {
		Status  string `json:"status"`
		Message string `json:"message"`
	}{"ok", message})
}

// correctableError returns an error that the model can correct with another call.
func correctableError(format string, args ...any) tool.Result {
	return tool.JSONResult(map[string]string{"error": fmt.Sprintf(format, args...)})
}

// withTodoArgs returns an action that reads its arguments first.
func withTodoArgs(do func(l *TodoList, a todoArgs) tool.Result) func(*TodoList, json.RawMessage) tool.Result {
	return func(l *TodoList, args json.RawMessage) tool.Result {
		var a todoArgs
		if err := json.Unmarshal(args, &a); err != nil {
			return tool.FailedResult("Todo tool failed: %v", err)
		}
		return do(l, a)
	}
}

func (l *TodoList) startList(a todoArgs) tool.Result {
	*l = TodoList{Goal: a.Goal, changed: true}
	return okResult("Initialized new todo list")
}

func (l *TodoList) addItem(a todoArgs) tool.Result {
	if strings.TrimSpace(a.Task) == "" {
		return correctableError("task description is required")
	}
	id := 1
	for _, i := range l.Items {
		id = max(id, i.ID+1)
	}
	l.Items = append(l.Items, TodoItem{ID: id, Desc: a.Task})
	l.changed = true
	return tool.JSONResult(struct {
		Status string `json:"status"`
		ID     int    `json:"id"`
	}{"ok", id})
}

// findItem returns the item that a call names.
func (l *TodoList) findItem(a todoArgs) (*TodoItem, *tool.Result) {
	text := strings.TrimSpace(strings.Trim(string(a.ID), `"`))
	id, err := strconv.Atoi(text)
	if err != nil {
		return nil, new(correctableError("id is required and must be a number"))
	}
	for i := range l.Items {
		if l.Items[i].ID == id {
			return &l.Items[i], nil
		}
	}
	return nil, new(correctableError("Todo %d not found", id))
}

func (l *TodoList) markDone(a todoArgs) tool.Result {
	i, bad := l.findItem(a)
	if bad != nil {
		return *bad
	}
	i.Done = true
	l.changed = true
	return okResult(fmt.Sprintf("Marked todo %d as done", i.ID))
}

func (l *TodoList) updateItem(a todoArgs) tool.Result {
	i, bad := l.findItem(a)
	if bad != nil {
		return *bad
	}
	if strings.TrimSpace(a.Task) != "" {
		i.Desc = a.Task
		l.changed = true
	}
	if a.Done != nil {
		i.Done = *a.Done
		l.changed = true
	}
	return okResult(fmt.Sprintf("Updated todo %d", i.ID))
}

func (l *TodoList) listItems(json.RawMessage) tool.Result {
	if len(l.Items) == 0 {
		return tool.JSONResult(TodoList{Items: []TodoItem{}})
	}
	return tool.JSONResult(*l)
}

func (l *TodoList) clearList(json.RawMessage) tool.Result {
	*l = TodoList{changed: true}
	return okResult("Todo list cleared")
}
