package draw

// scene is a finished picture, which both SVG and PNG draw.
type scene struct {
	w, h   float64
	title  string
	groups []group // in the order of painting
}

// group holds the figures and texts of one node, edge or frame.
type group struct {
	class string // node, edge, frame, start, finish, join or title
	data  []attr // attributes for a page that shows the SVG
	tip   string // shown when the pointer rests on it
	figs  []figure
	texts []caption
}

type attr struct{ key, value string }

// figure is a filled or stroked path. An empty colour is not painted.
type figure struct {
	path   path
	fill   string
	stroke string
	width  float64
	dash   []float64
	round  bool // strokes have round ends
}

// caption is one line of text.
type caption struct {
	at    pt // of the baseline
	left  bool
	style textStyle
	color string
	text  string
}
