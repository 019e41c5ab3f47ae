package draw

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"raddle.dev/graph"
)

// Limits of what is drawn. They are far above what a person can read, and keep a structure that contains itself, or
// the same child in many places, from using up the memory.
const (
	maxDepth = 32
	maxNodes = 20_000
)

// statusSigns are the signs of what a run did, in formats that have only names.
var statusSigns = map[string]string{StatusDone: "✓ ", StatusFailed: "✗ ", StatusWaiting: "⏸ ", StatusRunning: "◐ "}

// endKind is the kind of nodes that are an end themselves.
const endKind = "end"

// role says what a vertex of the picture represents.
type role int

const (
	roleNode   role = iota
	roleStart       // the dot from which a graph starts
	roleFinish      // the dot at which its branches end
	roleJoin        // the bar at which the sources of a join meet
)

// vertex is something drawn with edges at it.
// Its id does not come from the name of a node, because names may have any characters.
type vertex struct {
	id   string // unique in the whole picture and safe in every format
	role role
	info graph.NodeInfo // of a node
	path string         // the names from the outermost graph to the node, with slashes
	sub  *level         // the graph inside the node

	first bool // it runs first, and no dot says so
}

// link is a drawn edge between two vertices of a level.
// The numbers are indexes of the level's vertices.
type link struct {
	from, to int
	label    string
	kind     graph.EdgeKind
	headless bool // leads into a join's bar: no arrow
}

// level is one graph of the picture.
// Levels are a tree: the graph inside a node is the sub of its vertex. All formats draw the same
// levels.
type level struct {
	name     string
	vertices []vertex
	links    []link
}

// planner turns structures into levels.
type planner struct {
	o     Options
	nodes int // drawn so far
}

// planPicture checks s and adds what a picture shows in addition to nodes and edges.
// These are the dot of the start, the end, and the bars of joins. It returns an error for a
// structure that cannot be drawn: two nodes with one name, an edge to a node that does not exist,
// or more than the limits.
func planPicture(s graph.Structure, o Options) (*level, error) {
	l, err := (&planner{o: o}).planLevel(&s, "", 0)
	if err == nil && o.Title != "" {
		l.name = cleanLabel(o.Title)
	}
	return l, err
}

// newVertex returns a vertex with the next id of the picture. The caller adds it to a level.
func (p *planner) newVertex(r role) vertex {
	p.nodes++
	return vertex{id: "n" + strconv.Itoa(p.nodes-1), role: r}
}

// planLevel returns the level of a structure. path is the path of the node that it is in, with a
// slash at the end, and depth is the number of graphs around it. The dot of the start is always the
// first vertex, if there is one.
func (p *planner) planLevel(s *graph.Structure, path string, depth int) (*level, error) {
	if depth > maxDepth {
		return nil, depthError(s.Name)
	}
	l := &level{name: cleanLabel(s.Name)}
	if len(s.Start) > 0 && !p.o.NoEnds {
		l.vertices = append(l.vertices, p.newVertex(roleStart))
	}
	at := make(map[string]int, len(s.Nodes))
	for _, n := range s.Nodes {
		if _, twice := at[n.Name]; twice || n.Name == graph.End {
			return nil, fmt.Errorf("draw: graph %q: two nodes are named %q: give each its own name", s.Name, n.Name)
		}
		at[n.Name] = len(l.vertices)
		v := p.newVertex(roleNode)
		if p.nodes > maxNodes {
			return nil, sizeError(s.Name)
		}
		v.info = n
		v.path = path + n.Name
		if n.Name == s.Finally { // no edge leads to it
			v.info.Title = v.displayName() + "\nfinally"
		}
		if note, ok := p.o.Run[v.path]; ok && p.o.notesInNames {
			// Formats that can only name nodes show the run in the second line of the name.
			v.info.Title = v.displayName() + "\n" + statusSigns[note.Status] + note.sentence()
		}
		var err error
		if v.sub, err = p.planContents(&n, v.path+"/", depth+1); err != nil {
			return nil, err
		}
		l.vertices = append(l.vertices, v)
	}
	return l, p.addLinks(l, s, at)
}

// planContents returns what a node runs: its child graph, or a box for each graph that it may run under names, with no
// edges between them, because the node decides at run time. If nil, there is nothing to draw.
func (p *planner) planContents(n *graph.NodeInfo, path string, depth int) (*level, error) {
	child := n.Child != nil && len(n.Child.Nodes) > 0
	switch {
	case child && len(n.Children) == 0:
		return p.planLevel(n.Child, path, depth)
	case len(n.Children) == 0:
		return nil, nil
	case depth > maxDepth:
		return nil, depthError(n.Name)
	}
	l := &level{name: cleanLabel(n.Name)}
	add := func(name, path string, s *graph.Structure) error {
		v := p.newVertex(roleNode)
		if p.nodes > maxNodes {
			return sizeError(n.Name)
		}
		v.info = graph.NodeInfo{Name: name, Kind: "agent"}
		v.path = path
		if len(s.Nodes) > 0 {
			var err error
			if v.sub, err = p.planLevel(s, path+"/", depth+1); err != nil {
				return err
			}
		}
		l.vertices = append(l.vertices, v)
		return nil
	}
	if child {
		if err := add(n.Child.Name, path+n.Child.Name, n.Child); err != nil {
			return nil, err
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(n.Children)) {
		s := n.Children[kind]
		if err := add(kind, path+kind, &s); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// addLinks adds the links of a level, and the bars and the end to which they lead.
// at maps the names of nodes to the indexes of their vertices. All edges of one join meet at the
// same bar, from which one arrow leads to the target.
//
// Options may leave out edges: NoEnds those from the start and to the end, NoRoutes those that
// nodes choose. An edge to the end from a node of the kind end is never drawn.
func (p *planner) addLinks(l *level, s *graph.Structure, at map[string]int) error {
	find := func(what, name string) (int, error) {
		i, ok := at[name]
		if !ok {
			return 0, fmt.Errorf("draw: graph %q: %s node %q, which the graph does not have", s.Name, what, name)
		}
		return i, nil
	}
	for _, name := range s.Start {
		to, err := find("starts at", name)
		if err != nil {
			return err
		}
		if p.o.NoEnds {
			l.vertices[to].first = true
			continue
		}
		l.links = append(l.links, link{from: 0, to: to, kind: graph.EdgePlain})
	}
	// Edges of one join have the same target and the same number.
	type group struct {
		to   string
		join int
	}
	bars := make(map[group]int)
	for _, e := range s.Edges {
		if e.From == graph.End {
			return fmt.Errorf("draw: graph %q: an edge leads from %s to %q: nothing follows the end", s.Name, graph.End, e.To)
		}
		from, err := find("an edge leads from", e.From)
		if err != nil {
			return err
		}
		if e.To == graph.End && s.Nodes[slices.IndexFunc(s.Nodes, func(n graph.NodeInfo) bool { return n.Name == e.From })].Kind == endKind {
			continue // the node itself is the sign of the end
		}
		if p.o.NoEnds && e.To == graph.End || p.o.NoRoutes && e.Kind == graph.EdgeRoute {
			continue
		}
		if _, known := at[graph.End]; !known && e.To == graph.End {
			at[graph.End] = len(l.vertices)
			l.vertices = append(l.vertices, p.newVertex(roleFinish))
		}
		to, err := find(fmt.Sprintf("an edge leads from %q to", e.From), e.To)
		if err != nil {
			return err
		}
		k := link{from: from, to: to, label: cleanLabel(e.Label), kind: e.Kind}
		if e.Kind == graph.EdgeJoin {
			bar, known := bars[group{e.To, e.Join}]
			if !known {
				bar = len(l.vertices)
				bars[group{e.To, e.Join}] = bar
				l.vertices = append(l.vertices, p.newVertex(roleJoin))
				l.links = append(l.links, link{from: bar, to: to, kind: graph.EdgeJoin})
			}
			k.to = bar
			k.headless = true
		}
		l.links = append(l.links, k)
	}
	return nil
}

// depthError reports graphs within graphs that are more than maxDepth deep. name is the innermost
// one.
func depthError(name string) error {
	return fmt.Errorf("draw: graph %q: more than %d graphs within each other: does it contain itself?", name, maxDepth)
}

// sizeError reports more than maxNodes nodes. name is the graph in which they became too many.
func sizeError(name string) error {
	return fmt.Errorf("draw: graph %q: more than %d nodes, those of its child graphs included: draw a part of it", name, maxNodes)
}

// checkDepth finds a structure that contains itself.
// It applies the limits of planPicture to the formats that do not need a plan.
func checkDepth(s *graph.Structure) error {
	var walk func(s *graph.Structure, depth int) error
	// The count is for the whole structure: a child in many places counts at each of them.
	left := maxNodes
	walk = func(s *graph.Structure, depth int) error {
		if depth > maxDepth {
			return depthError(s.Name)
		}
		for i := range s.Nodes {
			if left--; left < 0 {
				return sizeError(s.Name)
			}
			if c := s.Nodes[i].Child; c != nil {
				if err := walk(c, depth+1); err != nil {
					return err
				}
			}
			for _, kind := range slices.Sorted(maps.Keys(s.Nodes[i].Children)) {
				c := s.Nodes[i].Children[kind]
				if err := walk(&c, depth+1); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return walk(s, 0)
}
