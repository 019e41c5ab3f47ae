package draw

import (
	"fmt"
	"io"
	"strings"

	"raddle.dev/graph"
)

// Direction is the direction of the edges of a picture.
type Direction int

// The directions.
const (
	Down  Direction = iota // from top to bottom
	Right                  // from left to right
)

// Options are the options of a drawing. With the zero value, everything is drawn from top to bottom.
// Each format ignores the options that do not apply to it.
type Options struct {
	Direction Direction
	Title     string                            // above the drawing; "": the name of the graph
	NoRoutes  bool                              // leaves out the targets that nodes name themselves
	Theme     Theme                             // colours of SVG and PNG
	Columns   int                               // width of a drawing with characters; 0: 80
	ASCII     bool                              // draws with ASCII characters
	Paint     func(ink Ink, text string) string // colours a drawing with characters; nil: no colours

	// Run is what a run did with each node, by its path: the names from the outermost graph on, with slashes. Nodes
	// that are missing were not reached. nil: the picture shows no run.
	Run map[string]Note
	// Taken are the edges that a run has followed, by the paths of their nodes.
	Taken map[[2]string]bool

	// Members are the nodes for which one node of the structure is drawn, by its path. SVG only: data-members has their
	// paths, one a line.
	Members map[string][]string

	notesInNames bool // the notes of a run are in the names of nodes

	NoEnds bool // leaves out the dots of start and end; the nodes that run first get a bold outline
}

// A Note says what a run did with a node.
// It is shown below the name of the node, or as a sign in front of it.
type Note struct {
	Status string // one of the statuses below
	Text   string // more, such as its time, on one line
}

// sentence returns the note as a picture shows it.
func (n Note) sentence() string {
	if n.Text == "" {
		return n.Status
	}
	return n.Text
}

// The statuses of nodes in pictures of runs.
const (
	StatusDone    = "done"
	StatusFailed  = "failed"
	StatusWaiting = "waiting"
	StatusRunning = "running"
)

// Formats returns the names that [Write] knows.
func Formats() []string { return []string{"text", "mermaid", "dot", "svg", "png", "json"} }

// Write draws s in the named format. An unknown format is an error.
// The caller chooses the format by a word from a person, as [Formats] lists them.
func Write(w io.Writer, format string, s graph.Structure, o Options) error {
	switch format {
	case "text":
		return WriteText(w, s, o)
	case "mermaid":
		return WriteMermaid(w, s, o)
	case "dot":
		return WriteDOT(w, s, o)
	case "svg":
		return WriteSVG(w, s, o)
	case "png":
		return WritePNG(w, s, o)
	case "json":
		return WriteJSON(w, s)
	}
	return fmt.Errorf("draw: unknown format %q: use one of %s", format, strings.Join(Formats(), ", "))
}

// scene is a finished picture, which both SVG and PNG draw.
// Its coordinates are pixels of the SVG, from the upper left corner.
type scene struct {
	w, h   float64
	title  string
	groups []group // in the order of painting
}

// group holds the figures and texts of one node, edge or frame.
// A page can find the group by its class and its attributes.
type group struct {
	class string // node, edge, frame, start, finish, join or title
	data  []attr // attributes for a page that shows the SVG
	tip   string // shown when the pointer rests on it
	figs  []figure
	texts []caption
}

// attr is an attribute of an SVG element. Its value is text, which is escaped when it is written.
type attr struct{ key, value string }

// figure is a filled or stroked path. An empty colour is not painted.
// A figure may be filled, stroked, or both; its line is then painted over the area.
type figure struct {
	path   path
	fill   string
	stroke string
	width  float64
	dash   []float64
	round  bool // strokes have round ends
}

// caption is one line of text.
// Its style says which face and size it has; wrapText has made sure that it fits.
type caption struct {
	at    pt // of the baseline
	left  bool
	style textStyle
	color string
	text  string
}
