package draw

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"raddle.dev/graph"
)

// WriteMermaid writes s as a Mermaid flowchart, for instance for a Markdown page. Ids are generated; names are labels.
func WriteMermaid(w io.Writer, s graph.Structure, o Options) error {
	o.notesInNames = true
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

// writeLevel writes the nodes of a level, with a subgraph for each node that has a graph inside,
// and then its edges. Edges come last because Mermaid creates a node where its id first occurs, and
// the node must be in its own subgraph.
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
		from := l.vertices[k.from]
		to := l.vertices[k.to]
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

// writeEdge writes an edge and counts it: Mermaid styles edges by their number in the text.
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
// The brackets are Mermaid's notation for the outline, for example ([…]) for half circles at both
// ends.
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
// Mermaid has no theme of this package: the colours are those of the light one, and each node
// carries its own.
func (m *mermaid) writeStyles(top *level) {
	seen := make(map[string]bool)
	var walk func(l *level)
	walk = func(l *level) {
		for _, v := range l.vertices {
			class := mermaidClass(v)
			s := v.nodeStyle()
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
		// Edges are styled by their numbers; writeEdge has collected those of each kind.
		s := link{kind: kind}.linkStyle()
		if s.round {
			s.dash = []float64{2, 3} // Mermaid's strokes have no round ends
		}
		fmt.Fprintf(m.w, "  linkStyle %s stroke:%s,stroke-dasharray:%s\n", strings.Join(m.edges[kind], ","), s.color, dashText(s))
	}
}

// WriteDOT writes s as a digraph for Graphviz. Ids are generated; names are labels.
func WriteDOT(w io.Writer, s graph.Structure, o Options) error {
	o.notesInNames = true
	top, err := planPicture(s, o)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	d := &dot{w: b, right: o.Direction == Right}
	rank := "TB"
	if d.right {
		rank = "LR"
	}
	fmt.Fprintf(b, "digraph %s {\n", dotQuote(top.name))
	fmt.Fprintf(b, "  graph [rankdir=%s, compound=true, fontname=\"Helvetica\", fontcolor=%q, fontsize=16", rank, inkColor)
	if top.name != "" {
		fmt.Fprintf(b, ", label=%s, labelloc=t, labeljust=l", dotQuote(top.name))
	}
	fmt.Fprintf(b, "]\n  node [fontname=\"Helvetica\", fontsize=13, fontcolor=%q, style=filled]\n", inkColor)
	fmt.Fprintf(b, "  edge [fontname=\"Helvetica\", fontsize=11, fontcolor=%q, arrowsize=0.7]\n", mutedColor)
	d.writeLevel(top, "  ")
	fmt.Fprintln(b, "}")
	return b.Flush()
}

// dot writes one digraph. The buffered writer keeps an error of w until Flush.
type dot struct {
	w     *bufio.Writer
	right bool
	loops int // relays of loops at clusters so far
}

// writeLevel writes the nodes of a level, with a cluster for each node that has a graph inside, and
// then its edges.
func (d *dot) writeLevel(l *level, indent string) {
	for _, v := range l.vertices {
		if v.sub == nil {
			fmt.Fprintf(d.w, "%s%s [%s]\n", indent, v.id, d.nodeAttributes(v))
			continue
		}
		fmt.Fprintf(d.w, "%ssubgraph cluster_%s {\n", indent, v.id)
		fmt.Fprintf(d.w, "%s  graph [label=%s, labeljust=l, fontsize=13, style=\"rounded,filled\", fillcolor=%q, color=%q%s]\n",
			indent, dotQuote(v.displayName()), frameFill, frameLine, v.dotWidth())
		d.writeLevel(v.sub, indent+"  ")
		fmt.Fprintf(d.w, "%s}\n", indent)
	}
	for _, k := range l.links {
		d.writeEdge(l, k, indent)
	}
}

// nodeAttributes returns the attributes of a node: its label, shape and colours, and its
// description as the tooltip. The dots and bars that are not nodes have no label.
func (d *dot) nodeAttributes(v vertex) string {
	s := v.nodeStyle()
	attrs := ""
	switch s.form {
	case formBox:
		attrs = "shape=box"
	case formRound:
		attrs = `shape=box, style="rounded,filled"`
	case formPill:
		attrs = `shape=box, style="rounded,filled,bold"`
	case formHexagon:
		attrs = "shape=hexagon"
	case formSlanted:
		attrs = "shape=parallelogram"
	case formCylinder:
		attrs = "shape=cylinder"
	case formStack:
		attrs = "shape=box3d"
	case formCall:
		attrs = "shape=box, peripheries=2"
	case formDot:
		return fmt.Sprintf(`label="", tooltip="start", shape=circle, width=0.2, fillcolor=%q, color=%q`, s.fill, s.stroke)
	case formRing:
		return fmt.Sprintf(`label="", tooltip="end", shape=doublecircle, width=0.15, fillcolor=%q, color=%q`, s.fill, s.stroke)
	case formBar:
		width := 0.8
		height := 0.06
		if d.right {
			width, height = height, width
		}
		return fmt.Sprintf(`label="", tooltip="join", shape=box, width=%g, height=%g, fillcolor=%q, color=%q`,
			width, height, s.fill, s.stroke)
	}
	// All other nodes have their name inside.
	label := fmt.Sprintf("label=%s, %s, fillcolor=%q, color=%q%s", dotQuote(v.displayName()), attrs, s.fill, s.stroke, v.dotWidth())
	if doc := cleanLabel(v.info.Doc); doc != "" {
		label += ", tooltip=" + dotQuote(doc)
	}
	return label
}

// dotWidth makes the outline of a node that runs first bold.
func (v vertex) dotWidth() string {
	if !v.first {
		return ""
	}
	return fmt.Sprintf(", penwidth=%g", boldWidth)
}

// writeEdge writes a link. Graphviz draws edges between nodes only: an edge at a cluster is drawn to a node inside and
// cut off at the border. An edge from a cluster to itself becomes two edges with a point between them, because Graphviz
// draws none from a cluster to itself.
func (d *dot) writeEdge(l *level, k link, indent string) {
	from := l.vertices[k.from]
	to := l.vertices[k.to]
	if k.from == k.to && from.sub != nil {
		d.loops++
		relay := fmt.Sprintf("%sloop%d", from.id, d.loops)
		s := k.linkStyle()
		fmt.Fprintf(d.w, "%s%s [label=\"\", shape=point, color=%q]\n", indent, relay, s.color)
		fmt.Fprintf(d.w, "%s%s -> %s [%s, ltail=cluster_%s, dir=none]\n", indent, lastID(from), relay, dotEdge(k), from.id)
		k.label = ""
		fmt.Fprintf(d.w, "%s%s -> %s [%s, lhead=cluster_%s, constraint=false]\n", indent, relay, firstID(from), dotEdge(k), from.id)
		return
	}
	attrs := dotEdge(k)
	if from.sub != nil {
		attrs += ", ltail=cluster_" + from.id
	}
	if to.sub != nil {
		attrs += ", lhead=cluster_" + to.id
	}
	fmt.Fprintf(d.w, "%s%s -> %s [%s]\n", indent, lastID(from), firstID(to), attrs)
}

// dotEdge returns the attributes of an edge without those that only a cluster needs.
func dotEdge(k link) string {
	s := k.linkStyle()
	attrs := []string{fmt.Sprintf("color=%q", s.color)}
	if k.label != "" {
		attrs = append(attrs, "label="+dotQuote(k.label))
	}
	switch {
	case s.round:
		attrs = append(attrs, "style=dotted")
	case k.kind == graph.EdgeRoute:
		attrs = append(attrs, "style=dashed", "arrowhead=vee")
	case s.dash != nil:
		attrs = append(attrs, "style=dashed")
	}
	if k.headless {
		attrs = append(attrs, "arrowhead=none")
	}
	return strings.Join(attrs, ", ")
}

// firstID and lastID return the node of a vertex at which edges enter and leave.
// In a cluster these are nodes inside it: the first one, and the end or the last one.
func firstID(v vertex) string {
	for v.sub != nil {
		v = v.sub.vertices[0]
	}
	return v.id
}

// lastID is described at firstID.
func lastID(v vertex) string {
	for v.sub != nil {
		end := v.sub.vertices[len(v.sub.vertices)-1]
		for _, u := range v.sub.vertices {
			if u.role == roleFinish {
				end = u
			}
		}
		v = end
	}
	return v.id
}

// WriteJSON writes s as indented JSON, in the order of declaration. It also writes what cannot be drawn, such as an
// edge to a node that does not exist; it fails for a structure that contains itself. The form is that of
// [graph.Structure], which other programs read to draw graphs themselves.
func WriteJSON(w io.Writer, s graph.Structure) error {
	if err := checkDepth(&s); err != nil {
		return err
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(s)
}

// dotQuote writes s as a quoted string of DOT. In labels DOT knows escapes that begin with a backslash and also
// the character entities of HTML; both are switched off.
func dotQuote(s string) string {
	return `"` + dotEscaper.Replace(s) + `"`
}

// dotEscaper escapes what DOT reads as something else than text.
var dotEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "&", "&amp;")

// mermaidQuote writes s as a quoted label of Mermaid. Mermaid reads a label as Markdown and HTML, looks for icons
// and formulas in it and strips some lines of the whole text by patterns, so every character but letters, digits and
// harmless signs becomes a numeric entity in Mermaid's notation.
func mermaidQuote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			b.WriteString("<br/>")
		}
		mermaidLine(&b, []rune(line))
	}
	b.WriteByte('"')
	if b.Len() == 2 {
		return `" "`
	}
	return b.String()
}

// mermaidLine writes one line of a label. Digits with a dot or dash behind them at the beginning of
// a line would be a list in Markdown, and underscores around a word would be emphasis, so those
// signs are written as entities there.
func mermaidLine(b *strings.Builder, line []rune) {
	listMark := true // only digits so far: a sign now would make a list
	for i, r := range line {
		safe := strings.ContainsRune(" ,?!'", r) || isWord(r) || r >= 0x80 && !strings.ContainsRune("ﬂ°¶ß", r)
		switch r {
		case '-', '.':
			safe = !listMark
		case '_':
			safe = i > 0 && i < len(line)-1 && isWord(line[i-1]) && isWord(line[i+1])
		}
		listMark = listMark && (r >= '0' && r <= '9' || r == ' ')
		if safe {
			b.WriteRune(r)
			continue
		}
		b.WriteString("#" + strconv.Itoa(int(r)) + ";")
	}
}

// isWord reports whether r is an ASCII letter or digit.
func isWord(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}
