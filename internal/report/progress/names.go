package progress

import (
	"fmt"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/team"
)

// agentNames gives the agents and nodes of a run names for people.
type agentNames struct {
	agent  string            // the agent of the run
	talks  bool              // it is one conversation, or a team
	long   bool              // add the ids of spawned agents
	dot    string            // what separates a name and a number
	short  map[string]string // names of spawned agents, by their ids
	counts map[string]int    // spawned agents of each name
}

func newAgentNames(agent string, talks bool) *agentNames {
	return &agentNames{agent: agent, talks: talks, dot: "·", short: map[string]string{}, counts: map[string]int{}}
}

// handleEvent numbers a spawned agent when it is mentioned for the first time.
func (n *agentNames) handleEvent(ev graph.Event) {
	emitted, ok := ev.Body.(graph.ValueEmitted)
	if !ok {
		return
	}
	switch v := emitted.Value.(type) {
	case team.AgentStarted:
		n.nameAgent(v.ID)
	case team.AgentQueued:
		n.nameAgent(v.ID)
	}
}

// nameAgent returns the name of a spawned agent: "explore·1" is the first one that runs explore.
func (n *agentNames) nameAgent(id string) string {
	name, known := n.short[id]
	if !known {
		name = team.AgentOf(id)
		n.counts[name]++
		name = fmt.Sprintf("%s%s%d", name, n.dot, n.counts[name])
		n.short[id] = name
	}
	if n.long {
		name += " (" + id + ")"
	}
	return name
}

// itemPattern matches the index of an item of a map in a path.
var itemPattern = pattern.CompileLater(`\[(\d+)\]`)

// displayName returns a path for people: the name of a team's agent, or the nodes.
func (n *agentNames) displayName(path string) string {
	path = strings.TrimSuffix(path, "/")
	above := ""
	last := path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		above = path[:i]
		last = path[i+1:]
	}
	switch {
	case path == "" || last == team.Lead && above == team.Node && n.talks:
		return n.agent
	case last == team.Lead && strings.HasSuffix(above, "/"+team.Node):
		above = strings.TrimSuffix(above, "/"+team.Node)
		return above[memberEnd(above):]
	case team.AgentOf(last) != "":
		return n.nameAgent(last)
	}
	return itemPattern().ReplaceAllString(path[memberEnd(path):], n.dot+"$1")
}

// labelOf returns who does what happens at a path, for the lines of several that work at the same time; "" for the
// agent of the run.
func (n *agentNames) labelOf(path string) string {
	var parts []string
	for id := range strings.SplitSeq(strings.TrimSuffix(path, "/"), "/") {
		switch {
		case id == "" || id == team.Node || id == team.Lead:
		case team.AgentOf(id) != "":
			parts = []string{n.nameAgent(id)}
		default:
			parts = append(parts, itemPattern().ReplaceAllString(id, n.dot+"$1"))
		}
	}
	return strings.Join(parts, "/")
}

// memberEnd returns the offset after the slash that ends the path of the innermost spawned
// agent in a path, or 0 if there is none.
func memberEnd(path string) int {
	for end := len(path); end > 0; {
		from := strings.LastIndexByte(path[:end], '/')
		if team.AgentOf(path[from+1:end]) != "" {
			return min(end+1, len(path))
		}
		end = from
	}
	return 0
}
