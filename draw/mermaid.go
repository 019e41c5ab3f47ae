package draw

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"raddle.dev/graph"
)

// WriteMermaid writes s as a Mermaid flowchart, for instance for a Markdown page. Ids are generated; names are labels.
func WriteMermaid(w io.Writer, s graph.Structure, o Options) error {
	top, err := planPicture(s, o)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	m := &mermaid{w: b, direction: "TB", edges: make(map[graph.EdgeKind][]string)}
	if o.Direction == Right {
		m.direction = "LR"
	}
	if top.name != "" {
		title, err := json.Marshal(strings.ReplaceAll(top.name, "\n", " ")) // is a YAML string, too
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "---\ntitle: %s\n---\n", title)
	}
	fmt.Fprintf(b, "flowchart %s\n", m.direction)
	m.writeLevel(top, "  ")
	m.writeStyles(top)
	return b.Flush()
}

// mermaid writes one flowchart. The buffered writer keeps an error of w until Flush.
type mermaid struct {
	w         *bufio.Writer
	direction string
	count     int                         // edges so far
	edges     map[graph.EdgeKind][]string // their numbers
}

func (m *mermaid) writeLevel(l *level, indent string) {
	for _, v := range l.vertices {
		if v.sub == nil {
			fmt.Fprintf(m.w, "%s%s%s:::%s\n", indent, v.id, mermaidShape(v), mermaidClass(v))
			continue
		}
		fmt.Fprintf(m.w, "%ssubgraph %s[%s]\n%s  direction %s\n", indent, v.id, mermaidQuote(v.displayName()), indent, m.direction)
		m.writeLevel(v.sub, indent+"  ")
		fmt.Fprintf(m.w, "%send\n", indent)
	}
	for _, k := range l.links {
		from, to := l.vertices[k.from], l.vertices[k.to]
		if k.from == k.to && from.sub != nil { // an edge from a subgraph to itself is not drawn by Mermaid
			relay := fmt.Sprintf("%sloop%d", from.id, m.count)
			fmt.Fprintf(m.w, "%s%s((\" \")):::start\n", indent, relay)
			half := k
			half.headless = true
			m.writeEdge(half, indent, from.id, relay)
			k.label = ""
			m.writeEdge(k, indent, relay, to.id)
			continue
		}
		m.writeEdge(k, indent, from.id, to.id)
	}
}

func (m *mermaid) writeEdge(k link, indent, from, to string) {
	arrow := "-->"
	switch {
	case k.headless:
		arrow = "---"
	case k.linkStyle().dash != nil:
		arrow = "-.->"
	}
	if k.label != "" {
		arrow += "|" + mermaidQuote(k.label) + "|"
	}
	fmt.Fprintf(m.w, "%s%s %s %s\n", indent, from, arrow, to)
	if k.linkStyle().dash != nil {
		m.edges[k.kind] = append(m.edges[k.kind], fmt.Sprint(m.count))
	}
	m.count++
}

// mermaidShape returns the label of a vertex in the brackets of its shape.
func mermaidShape(v vertex) string {
	label := mermaidQuote(v.displayName())
	switch v.nodeStyle().form {
	case formRound:
		return "(" + label + ")"
	case formPill:
		return "([" + label + "])"
	case formHexagon:
		return "{{" + label + "}}"
	case formSlanted:
		return "[/" + label + "/]"
	case formCylinder:
		return "[(" + label + ")]"
	case formStack:
		return `[/` + label + `\]`
	case formCall:
		return "[[" + label + "]]"
	case formDot:
		return `(("start"))`
	case formRing:
		return `((("end")))`
	case formBar:
		return `["join"]`
	}
	return "[" + label + "]"
}

// mermaidClass returns the class of a vertex. Users choose the names of kinds, so only known kinds get a class.
func mermaidClass(v vertex) string {
	switch v.role {
	case roleStart:
		return "start"
	case roleFinish:
		return "finish"
	case roleJoin:
		return "join"
	}
	if _, ok := kindStyles[v.info.Kind]; ok {
		return "k_" + v.info.Kind
	}
	return "plain"
}

// writeStyles writes the classes that occur and the style of the edges that are not plain.
func (m *mermaid) writeStyles(top *level) {
	seen := make(map[string]bool)
	var walk func(l *level)
	walk = func(l *level) {
		for _, v := range l.vertices {
			class, s := mermaidClass(v), v.nodeStyle()
			if v.first {
				fmt.Fprintf(m.w, "  style %s stroke-width:%gpx\n", v.id, boldWidth)
			}
			if v.sub != nil {
				fmt.Fprintf(m.w, "  style %s fill:%s,stroke:%s\n", v.id, frameFill, frameLine)
				walk(v.sub)
				continue
			}
			if seen[class] {
				continue
			}
			seen[class] = true
			ink := inkColor
			if v.role != roleNode {
				ink = paperColor
			}
			fmt.Fprintf(m.w, "  classDef %s fill:%s,stroke:%s,color:%s\n", class, s.fill, s.stroke, ink)
		}
	}
	walk(top)
	for _, kind := range []graph.EdgeKind{graph.EdgeBranch, graph.EdgeRoute, graph.EdgeError} {
		if len(m.edges[kind]) == 0 {
			continue
		}
		s := link{kind: kind}.linkStyle()
		if s.round {
			s.dash = []float64{2, 3} // Mermaid's strokes have no round ends
		}
		fmt.Fprintf(m.w, "  linkStyle %s stroke:%s,stroke-dasharray:%s\n", strings.Join(m.edges[kind], ","), s.color, dashText(s))
	}
}
