package draw

import "raddle.dev/graph"

// style is the look of a kind of node.
// Colours are those of the light theme; Theme.colorIn replaces them when the picture is written.
type style struct {
	form         form
	fill, stroke string
}

// boldWidth is the width of the outline of a node that runs first, if no start dot is drawn.
const boldWidth = 3.0

// kindStyles maps the kinds of nodes to their look. Colours come in families: models are violet, people amber,
// code green, knowledge blue.
var kindStyles = map[string]style{
	"llm":      {formRound, "#f3f0ff", "#7c5cdb"},
	"model":    {formRound, "#f3f0ff", "#7c5cdb"},
	"server":   {formCall, "#eaf7ef", "#3a9464"},
	"agent":    {formCall, "#fbeefc", "#b14fc5"},
	"team":     {formCall, "#fbeefc", "#b14fc5"},
	"script":   {formBox, "#eaf7ef", "#3a9464"},
	"tool":     {formBox, "#eaf7ef", "#3a9464"},
	"tools":    {formBox, "#eaf7ef", "#3a9464"},
	"approval": {formHexagon, "#fff6e0", "#d1930f"},
	"input":    {formSlanted, "#fff1e6", "#db7a2b"},
	"wait":     {formPill, "#fdf6e3", "#a68a3c"},
	"rag":      {formCylinder, "#e9f4fd", "#3384c4"},
	"map":      {formStack, "#e6f7f7", "#21918f"},
	"graph":    {formCall, "#f4f6f9", "#64748b"},
	"end":      {formPill, "#eceff3", "#475569"},
}

// plainStyle is the look of a node whose kind has none of its own.
var plainStyle = style{formBox, "#ffffff", "#7c8a9c"}

// Colours of everything else.
const (
	inkColor   = "#1e293b" // names
	mutedColor = "#64748b" // small words
	paperColor = "#ffffff"
	dotColor   = "#334155" // start, end and joins
	frameFill  = "#f7f9fb"
	frameLine  = "#b6c2d1"

	doneColor    = "#3a9464" // what a run did
	failedColor  = "#d13438"
	waitingColor = "#d1930f"
)

// nodeStyle returns the style of a vertex.
func (v vertex) nodeStyle() style {
	switch v.role {
	case roleStart:
		return style{formDot, dotColor, dotColor}
	case roleFinish:
		return style{formRing, dotColor, dotColor}
	case roleJoin:
		return style{formBar, dotColor, dotColor}
	}
	if s, ok := kindStyles[v.info.Kind]; ok {
		return s
	}
	return plainStyle
}

// edgeStyle is the look of a kind of edge.
// Dashes and dots let a reader see the kind of an edge without its colour.
type edgeStyle struct {
	color  string
	dash   []float64 // lengths of strokes and gaps, nil for a solid line
	round  bool      // strokes are dots
	weight int       // how important it is that the edge is short and straight
}

// linkStyle returns the style of a link. An unknown kind looks like a plain edge.
func (k link) linkStyle() edgeStyle {
	switch k.kind {
	case graph.EdgeBranch:
		return edgeStyle{color: "#4f5fc4", dash: []float64{7, 4}, weight: 8}
	case graph.EdgeRoute:
		return edgeStyle{color: "#0f7b72", dash: []float64{3, 3}, weight: 8}
	case graph.EdgeError:
		return edgeStyle{color: "#d13438", dash: []float64{0, 4.5}, round: true, weight: 1}
	}
	return edgeStyle{color: "#55637a", weight: 12}
}
