package draw

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"raddle.dev/graph"
)

// WriteDOT writes s as a digraph for Graphviz. Ids are generated; names are labels.
func WriteDOT(w io.Writer, s graph.Structure, o Options) error {
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
		width, height := 0.8, 0.06
		if d.right {
			width, height = height, width
		}
		return fmt.Sprintf(`label="", tooltip="join", shape=box, width=%g, height=%g, fillcolor=%q, color=%q`,
			width, height, s.fill, s.stroke)
	}
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

// writeEdge writes a link. Graphviz draws edges between nodes only: an edge at a cluster is drawn to a node inside and cut
// off at the border.
func (d *dot) writeEdge(l *level, k link, indent string) {
	from, to := l.vertices[k.from], l.vertices[k.to]
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
func firstID(v vertex) string {
	for v.sub != nil {
		v = v.sub.vertices[0]
	}
	return v.id
}

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
