package testrun

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/proving/testcase"
	"raddle.dev/team"
)

// naming turns paths of tasks into the names that cases use.
type naming struct {
	root   *flow.Agent
	agents []*flow.Agent // root and those below it
}

func newNaming(a *flow.Agent) *naming { return &naming{root: a, agents: a.Agents()} }

// frame returns the path of the map around a branch, or that of the execution itself.
func (p *place) frame() string {
	if at := strings.LastIndexByte(p.Exec, '/'); p.Index >= 0 && at >= 0 {
		return p.Exec[:at]
	}
	return p.Exec
}

// place is where something happens in a run.
type place struct {
	Name  string // as a case names it: draft, review/draft; of an agent that is not a graph, its name
	Exec  string // the path of the task that executes the node: the same for all that one execution does
	Index int    // of the item, in a branch of a map; else -1

	Script string // the file of a script node, as its agent names it
}

// find returns the place of a task path such as 2.review.0/1.draft.0.
func (n *naming) find(path string) place {
	p := place{Index: -1}
	if n.root.File == nil {
		p.Name = n.root.Name
	}
	file := n.root.File
	parts := strings.Split(path, "/")
	first := 0
	var names []string
	for i := len(parts) - 1; i >= 0 && first == 0; i-- { // the innermost agent that another has started
		_, id, _ := strings.Cut(parts[i], "#")
		if name := team.AgentOf(id); name != "" {
			first = i + 1
			names = []string{name}
			file = nil
			p.Exec = strings.Join(parts[:i+1], "/")
			if started := n.findAgent(name); started != nil {
				file = started.File
			}
		}
	}
	for i := first; i < len(parts) && (first == 0 || file != nil); i++ {
		part := parts[i]
		id, index := splitTask(part)
		if file == nil { // inside of an agent that is not a graph
			p.Exec = strings.Join(parts[:i], "/")
			break
		}
		node := file.Node(id)
		if node == nil {
			break
		}
		p.Exec = strings.Join(parts[:i+1], "/")
		switch node.Kind() {
		case "map":
			continue // the branch is a node of the same file
		case "agent":
			names = append(names, id)
			if child := n.findAgent(textOf(node, "agent")); child != nil {
				file = child.File
			}
			continue
		}
		names = append(names, id)
		if node.Kind() == "script" {
			p.Script = textOf(node, "script")
		}
		if i > first {
			if above, _ := splitTask(parts[i-1]); file.Node(above) != nil && file.Node(above).Kind() == "map" {
				p.Index = index - 1 // the first task of the frame sends the items
			}
		}
		break
	}
	if len(names) > 0 {
		p.Name = strings.Join(names, "/")
	}
	return p
}

// findNamed returns the place of a path of nodes, such as review/draft, with the nodes of maps.
func (n *naming) findNamed(path string) place {
	return n.find("0." + strings.ReplaceAll(path, "/", ".0/0.") + ".0")
}

// splitTask returns the node and the index of a part of a task path.
func splitTask(part string) (node string, index int) {
	_, rest, _ := strings.Cut(part, ".")
	if at := strings.LastIndexByte(rest, '.'); at >= 0 {
		index, _ = strconv.Atoi(rest[at+1:])
		rest = rest[:at]
	}
	return rest, index
}

func (n *naming) findAgent(name string) *flow.Agent {
	if i := slices.IndexFunc(n.agents, func(a *flow.Agent) bool { return filepath.Base(a.Dir) == name }); i >= 0 {
		return n.agents[i]
	}
	return nil
}

// textOf returns a field of a node that is one text.
func textOf(n *spec.Node, field string) string {
	if v := n.Source.FieldNode(field); v != nil {
		return v.Value
	}
	return ""
}

// findNode returns the node with a name, and the file that it is in. node is nil if there is none.
func (n *naming) findNode(name string) (node *spec.Node, file *spec.File) {
	file = n.root.File
	for part := range strings.SplitSeq(name, "/") {
		if node != nil {
			child := n.findAgent(textOf(node, "agent"))
			if node.Kind() != "agent" || child == nil {
				return nil, file
			}
			file = child.File
		}
		if file == nil {
			return nil, nil
		}
		if node = file.Node(part); node == nil {
			return nil, file
		}
	}
	return node, file
}

// CheckNames returns what a case says about nodes that an agent does not have.
func CheckNames(a *flow.Agent, c *testcase.Case) []testcase.Failure { return newNaming(a).checkCase(c) }

// checkCase returns what a case says about nodes that the agent does not have.
func (n *naming) checkCase(c *testcase.Case) (failed []testcase.Failure) {
	add := func(f testcase.Failure, ok bool) {
		if !ok {
			failed = append(failed, f)
		}
	}
	for _, s := range c.Nodes {
		f, ok := n.checkNode(s.Node, "nodes", []string{"llm", "script", "agent"})
		f.Pos = s.Pos
		add(f, ok)
	}
	for _, s := range c.Faults {
		f, ok := n.checkNode(s.Node, "faults", []string{"llm", "script", "agent", "rag"})
		f.Pos = s.Pos
		add(f, ok)
	}
	for _, s := range c.Searches {
		if s.Node == testcase.OwnDocuments {
			continue
		}
		f, ok := n.checkNode(s.Node, "searches", []string{"rag"})
		f.Pos = s.Pos
		add(f, ok)
	}
	for _, r := range c.Replies {
		if n.findAgent(r.Node) != nil || r.Node == "" {
			continue
		}
		f, ok := n.checkNode(r.Node, "replies", nil)
		f.Pos = r.Pos
		add(f, ok)
	}
	for _, list := range [][]testcase.TextsOf{c.Expect.Prompts, c.Expect.Instructions} {
		for _, t := range list {
			if n.findAgent(t.Node) != nil {
				continue
			}
			f, ok := n.checkNode(t.Node, "expect", nil)
			f.Pos = t.Pos
			add(f, ok)
		}
	}
	if p := c.Expect.Path; p != nil {
		for _, item := range slices.Concat(p.Exact, p.Contains, p.Never) {
			f, ok := n.checkNode(item.Name, "path", nil)
			f.Pos = item.Pos
			add(f, ok)
		}
	}
	return failed
}

// checkNode returns why a node cannot be named in a part of a case. kinds are the types that it may have; nil: any.
func (n *naming) checkNode(name, what string, kinds []string) (f testcase.Failure, ok bool) {
	f.What = what
	node, file := n.findNode(name)
	switch {
	case node == nil && file == nil && !strings.Contains(name, "/"):
		f.Message = fmt.Sprintf("%s is not a graph, so it has no node %q: use replies, with `node: %s` or without node", n.root.Name, name, n.root.Name)
	case node == nil:
		var known []string
		if file != nil {
			for _, each := range file.Nodes {
				known = append(known, each.ID)
			}
		}
		f.Message = fmt.Sprintf("there is no node %q", name)
		if hint := wording.SuggestNearest(name[strings.LastIndexByte(name, '/')+1:], known, ""); hint != "" {
			f.Message += " (" + hint + ")"
		}
	case kinds != nil && !slices.Contains(kinds, node.Kind()):
		f.Message = fmt.Sprintf("the node %q is of type %s; here it must be %s", name, node.Kind(), strings.Join(kinds, " or "))
		if what == "nodes" && slices.Contains([]string{"approval", "input"}, node.Kind()) {
			f.Message += fmt.Sprintf(". Write `answers: {%s: ...}`", name)
		}
	default:
		return f, true
	}
	return f, false
}

// NameTasks returns a function that gives the tasks of an agent's run the names that cases use, by their paths. index
// is that of the item in a branch of a map, else -1.
func NameTasks(a *flow.Agent) func(path string) (name string, index int) {
	names := newNaming(a)
	return func(path string) (string, int) {
		p := names.find(path)
		return p.Name, p.Index
	}
}
