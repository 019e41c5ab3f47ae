package coverage

import (
	"fmt"
	"io"
	"strings"

	"raddle.dev/draw"
	"raddle.dev/internal/base/wording"
)

// A Report is the coverage of one agent.
type Report struct {
	Agent   string  `json:"agent"`
	Runs    int     `json:"runs"`
	Covered int     `json:"covered"` // nodes and edges that were reached
	Total   int     `json:"total"`   // nodes and edges
	Percent float64 `json:"percent"` // 100 without nodes
	Nodes   []Node  `json:"nodes"`
	Edges   []Edge  `json:"edges"`
	Loops   []Loop  `json:"loops,omitempty"`
}

// A Node says how often a node was started.
type Node struct {
	Name   string `json:"name"`
	Visits int    `json:"visits"`
}

// An Edge says how often an edge was followed.
type Edge struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Label string `json:"label,omitempty"`
	Taken int    `json:"taken"`
}

// A Loop says how often a loop, or a map over a list, was repeated in a run. It is not part of the percentage: not
// every loop can be passed without a repetition, or repeated.
type Loop struct {
	Name string `json:"name"`
	Repeats
}

// Report returns what the runs that have ended have reached.
func (p *Profile) Report() Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := Report{Agent: p.name, Runs: p.runs, Percent: 100, Nodes: []Node{}, Edges: []Edge{}}
	for _, name := range p.plan.order {
		r.Nodes = append(r.Nodes, Node{name, p.taken.nodes[name]})
		r.count(p.taken.nodes[name])
		if p.plan.nodes[name].branch != "" {
			r.Loops = append(r.Loops, p.loop("map "+name, name))
		}
	}
	for _, e := range p.plan.edges {
		r.Edges = append(r.Edges, Edge{e.from, e.to, e.label, p.taken.edges[e]})
		r.count(p.taken.edges[e])
	}
	for _, name := range p.plan.loopNames() {
		r.Loops = append(r.Loops, p.loop("loop "+name, name))
	}
	if r.Total > 0 {
		r.Percent = 100 * float64(r.Covered) / float64(r.Total)
	}
	return r
}

func (r *Report) count(n int) {
	r.Total++
	if n > 0 {
		r.Covered++
	}
}

// loop returns the repetitions of a loop or a map. The caller must hold mu.
func (p *Profile) loop(name, key string) Loop {
	l := Loop{Name: name}
	if n := p.taken.repeats[key]; n != nil {
		l.Repeats = *n
	}
	return l
}

// WriteText writes the report for people: a line with the numbers, a line for everything that was not reached, and one
// for each loop that was not repeated in every way.
func (r Report) WriteText(w io.Writer) error {
	var b strings.Builder
	var nodes, edges int
	for _, n := range r.Nodes {
		nodes += min(1, n.Visits)
	}
	for _, e := range r.Edges {
		edges += min(1, e.Taken)
	}
	fmt.Fprintf(&b, "coverage of %s: %.1f %% (%d of %s, %d of %s)\n", r.Agent, r.Percent, nodes, wording.FormatCount(len(r.Nodes), "node"), edges, wording.FormatCount(len(r.Edges), "edge"))
	for _, n := range r.Nodes {
		if n.Visits == 0 {
			fmt.Fprintf(&b, "  not reached: node %s\n", n.Name)
		}
	}
	for _, e := range r.Edges {
		if e.Taken == 0 {
			fmt.Fprintf(&b, "  not followed: %s\n", e)
		}
	}
	for _, l := range r.Loops {
		if missing := l.missing(); missing != "" {
			fmt.Fprintf(&b, "  %s: no case with %s\n", l.Name, missing)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// String returns the edge in words.
func (e Edge) String() string {
	text := e.From + " → " + e.To
	if e.Label != "" {
		text += " (" + e.Label + ")"
	}
	return text
}

// missing returns the numbers of repetitions that no run had.
func (r Repeats) missing() string {
	var list []string
	for _, each := range []struct {
		seen bool
		name string
	}{{r.Zero, "0"}, {r.One, "1"}, {r.Many, "several"}} {
		if !each.seen {
			list = append(list, each.name)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return strings.Join(list, ", ") + " repetitions"
}

// AddToPicture sets what was reached in the options of a picture of the agent.
func (r Report) AddToPicture(o *draw.Options) {
	o.Title = fmt.Sprintf("%s · %.1f %% covered", r.Agent, r.Percent)
	o.Run = map[string]draw.Note{}
	o.Taken = map[[2]string]bool{}
	for _, n := range r.Nodes {
		if n.Visits > 0 {
			o.Run[n.Name] = draw.Note{Status: draw.StatusDone, Text: fmt.Sprintf("%d×", n.Visits)}
		}
	}
	for _, e := range r.Edges {
		if e.Taken > 0 {
			o.Taken[[2]string{e.From, e.To}] = true
		}
	}
}
