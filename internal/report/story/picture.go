package story

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"raddle.dev/draw"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/runs"
)

// AddRun sets what a run did in the options of a picture of its agent.
func AddRun(o *draw.Options, s *graph.Structure, d *runs.Detail, story []runs.Moment) {
	p := newRunPicture(s, d)
	for i := range story {
		p.addMoment(&story[i])
	}
	p.finish()
	o.Title = fmt.Sprintf("%s · %s · %s", d.Agent, runs.Point{Run: d.Run, At: d.At}, d.Status)
	o.Run = p.notes()
	o.Taken = p.taken
}

// StructureOf returns the nodes that a run has entered, and the edges that it has followed.
func StructureOf(d *runs.Detail, story []runs.Moment) graph.Structure {
	s := graph.Structure{Name: d.Agent}
	add := func(name string) {
		if !slices.ContainsFunc(s.Nodes, func(n graph.NodeInfo) bool { return n.Name == name }) {
			s.Nodes = append(s.Nodes, graph.NodeInfo{Name: name})
		}
	}
	for _, m := range story {
		if m.Path != "" {
			continue
		}
		for _, n := range slices.Concat(m.From, m.Next) {
			add(n)
		}
		if m.Kind == journal.KindStart {
			s.Start = m.Next
		}
		for _, from := range m.From {
			for _, to := range m.Next {
				e := graph.EdgeInfo{From: from, To: to, Kind: graph.EdgePlain}
				if !slices.Contains(s.Edges, e) {
					s.Edges = append(s.Edges, e)
				}
			}
		}
	}
	return s
}

// A runPicture gathers what a run did with the nodes of a picture.
type runPicture struct {
	detail *runs.Detail
	nodes  map[string]*nodeRun // by path in the picture
	edges  map[[2]string]bool  // of the picture
	places *Places
	taken  map[[2]string]bool

	active  time.Duration            // work of the run so far
	last    time.Time                // of the newest moment of a drive; zero: no drive
	began   map[string]time.Duration // of the current step, by the path of its frame
	current map[string][]string      // nodes that run next, by the path of their frame
	stopped []*nodeRun               // with which the last drive has failed
}

// A nodeRun is what a run did with one node.
type nodeRun struct {
	status string
	visits int
	took   time.Duration
	tokens int
	calls  int  // of tools
	fails  int  // how often the node failed, and its agents, items and calls
	failed bool // it has failed, and has not started again since
}

func newRunPicture(s *graph.Structure, d *runs.Detail) *runPicture {
	p := &runPicture{detail: d, nodes: map[string]*nodeRun{}, edges: map[[2]string]bool{}, places: NewPlaces(s), taken: map[[2]string]bool{}, began: map[string]time.Duration{}, current: map[string][]string{}}
	p.addLevel(s, "")
	return p
}

// addLevel records the edges of a graph.
func (p *runPicture) addLevel(s *graph.Structure, prefix string) {
	for _, n := range s.Nodes {
		if n.Child != nil {
			p.addLevel(n.Child, prefix+n.Name+"/")
		}
	}
	for _, e := range s.Edges {
		p.edges[[2]string{prefix + e.From, prefix + e.To}] = true
	}
}

// node returns what the run did with a node, nil if the picture does not show it.
func (p *runPicture) node(path string) *nodeRun { return p.ensureNode(p.places.Find(path)) }

// ensureNode returns what the run did at a place, nil if the picture does not have it.
func (p *runPicture) ensureNode(place string) *nodeRun {
	if !p.places.has(place) {
		return nil
	}
	if p.nodes[place] == nil {
		p.nodes[place] = &nodeRun{}
	}
	return p.nodes[place]
}

// joinPath puts a node after the path of its frame.
func joinPath(frame, node string) string { return strings.TrimPrefix(frame+"/"+node, "/") }

// addMoment adds one moment.
func (p *runPicture) addMoment(m *runs.Moment) {
	if !p.last.IsZero() && m.Time.After(p.last) {
		p.active += m.Time.Sub(p.last)
	}
	if p.last = m.Time; m.Kind == journal.KindEnd || m.Kind == journal.KindEdit {
		p.last = time.Time{}
	}
	frame := m.Node
	for _, place := range p.places.FindFailed(m) {
		n := p.ensureNode(place)
		n.fails++
		if n.failed = true; m.Kind == journal.KindEnd {
			p.stopped = append(p.stopped, n)
		}
	}
	if m.Kind == journal.KindClaim { // they start again
		for _, n := range p.stopped {
			n.failed = false
		}
		p.stopped = nil
	}
	switch m.Kind {
	case journal.KindEffect:
		p.addEffect(m)
	case journal.KindTask:
		p.endNode(m.Node, "", p.began[m.Path])
	case journal.KindStep:
		for _, from := range m.From {
			p.endFrames(joinPath(frame, from))
			if !m.Inner {
				p.endNode(joinPath(frame, from), from, p.began[m.Path])
			}
			for _, to := range m.Next {
				if edge := [2]string{p.places.Find(joinPath(frame, from)), p.places.Find(joinPath(frame, to))}; p.edges[edge] {
					p.taken[edge] = true
				}
			}
		}
	}
	switch m.Kind {
	case journal.KindStart, journal.KindCall, journal.KindStep, journal.KindEdit, journal.KindFork, journal.KindSnapshot:
		p.began[m.Path], p.current[frame] = p.active, m.Next
		for _, to := range m.Next {
			// a node with many items may have failed for another one
			if n := p.node(joinPath(frame, to)); n != nil && m.Tasks <= len(m.Next) {
				n.failed = false
			}
		}
	case journal.KindReturn:
		delete(p.current, frame)
	}
}

// endFrames forgets what was to run in the graphs of a node, which end with it.
func (p *runPicture) endFrames(node string) {
	maps.DeleteFunc(p.current, func(frame string, _ []string) bool {
		rest, inside := strings.CutPrefix(frame, node)
		return inside && frame != "" && (rest == "" || rest[0] == '/' || rest[0] == '[')
	})
}

// endNode records the end of a node. A node of a parallel step ends with its task, and is in its step again.
func (p *runPicture) endNode(path, inStep string, began time.Duration) {
	n := p.node(path)
	if n == nil || inStep != "" && n.status == draw.StatusRunning {
		if n != nil {
			n.status = draw.StatusDone
		}
		return
	}
	if n.status = draw.StatusDone; inStep == "" {
		n.status = draw.StatusRunning // until its step ends
	}
	n.visits++
	n.took += p.active - began
}

// addEffect adds a reply or a call to its node and the nodes around it.
func (p *runPicture) addEffect(m *runs.Moment) {
	path := p.places.effectPath(m)
	for {
		if n := p.nodeAt(path); n != nil {
			if m.Reply != nil {
				n.tokens += m.Reply.Usage.Input + m.Reply.Usage.Output
			}
			if m.Call != nil {
				n.calls++
			}
			if n.status == "" {
				n.status = draw.StatusDone
			}
			if n.visits == 0 && m.Took > 0 {
				n.took += m.Took
			}
		}
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return
		}
		path = path[:i]
	}
}

// nodeAt is node for a path whose last part may be a node of a picture of an agent.
func (p *runPicture) nodeAt(path string) *nodeRun {
	i := strings.LastIndexByte(path, '/')
	last := path[i+1:]
	if last != flow.PictureModel && last != flow.PictureTools {
		return p.node(path)
	}
	return p.ensureNode(joinPath(p.places.Find(path[:max(i, 0)]), last))
}

// finish sets the status of the nodes that have not ended.
func (p *runPicture) finish() {
	ended := map[*nodeRun]bool{} // in a step that has not ended
	defer func() {
		for _, n := range p.nodes {
			if n.failed && n.status != draw.StatusWaiting && n.status != draw.StatusRunning {
				n.status = draw.StatusFailed
			}
		}
	}()
	for _, n := range p.nodes {
		if n.status == draw.StatusRunning {
			n.status, ended[n] = draw.StatusDone, true
		}
	}
	final := p.detail.Snapshot.Status
	if final.Final() && final != graph.Failed {
		return
	}
	asks := map[string]bool{}
	for _, q := range p.detail.Snapshot.Questions {
		id, _, _ := strings.Cut(q.ID, "#")
		for path := id; path != ""; path = path[:max(0, strings.LastIndexByte(path, '/'))] {
			asks[p.places.Find(path)] = true
		}
	}
	for frame, next := range p.current {
		if frame != "" && p.places.Find(frame) == "" {
			continue
		}
		for _, name := range next {
			n := p.node(joinPath(frame, name))
			if n == nil { // a step of a conversation
				n = p.nodeAt(joinPath(frame, flow.PictureModel))
			}
			place := p.places.Find(joinPath(frame, name))
			switch {
			case n == nil || ended[n]:
			case place != "" && asks[place], place == "" && len(p.detail.Snapshot.Questions) > 0:
				n.status = draw.StatusWaiting
			case p.detail.Status == runs.Running:
				n.status = draw.StatusRunning
			case final == graph.Failed || p.detail.Status == runs.Crashed:
				n.status = draw.StatusFailed
			}
		}
	}
}

// notes returns what the picture shows at each node.
func (p *runPicture) notes() map[string]draw.Note {
	notes := map[string]draw.Note{}
	for path, n := range p.nodes {
		if n.status == "" {
			continue // it has been reached, and has not run
		}
		var parts []string
		if n.visits > 1 {
			parts = append(parts, fmt.Sprintf("%d×", n.visits))
		}
		if n.took >= 50*time.Millisecond {
			parts = append(parts, FormatSeconds(n.took))
		}
		if n.tokens > 0 {
			parts = append(parts, wording.FormatTokens(n.tokens)+" tokens")
		}
		if n.calls > 0 {
			parts = append(parts, wording.FormatCount(n.calls, "call"))
		}
		if n.fails > 1 || n.fails == 1 && (n.status != draw.StatusFailed || n.calls > 0) {
			parts = append(parts, fmt.Sprintf("%d failed", n.fails))
		}
		switch n.status {
		case draw.StatusWaiting:
			parts = append(parts, "waits")
		case draw.StatusFailed:
			if n.fails <= 1 && n.calls == 0 {
				parts = append(parts, "failed")
			}
		case draw.StatusRunning:
			parts = append(parts, "running")
		}
		notes[path] = draw.Note{Status: n.status, Text: strings.Join(parts, " · ")}
	}
	return notes
}
