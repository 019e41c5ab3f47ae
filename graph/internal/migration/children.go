package migration

import (
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/graph/internal/record"
)

// A ChangedChild is a named child whose graph is none of those that its node has now.
type ChangedChild struct {
	Path   string // in the journal
	Public string // for people
	Was    string // the digest of its graph
	Is     string // names the graphs that there are now
}

// childWalk walks through the frames that have not ended.
type childWalk struct {
	state   *record.ThreadState
	named   map[string][]string      // children, by task
	agreed  func(path string) string // what the caller has consented to before, as a quoted name
	changed []ChangedChild
}

// CompareChildren compares the graphs of named children with those that the nodes have now. Some of them are
// not part of the digest of the run's graph. named lists the paths of the children by their tasks.
func CompareChildren(s *record.ThreadState, named map[string][]string, g *Graph, agreed func(path string) string) []ChangedChild {
	w := childWalk{state: s, named: named, agreed: agreed}
	w.walkFrame("", "", g)
	return w.changed
}

func (w *childWalk) walkFrame(path, public string, g *Graph) {
	f := w.state.Frames[path]
	if f == nil {
		return
	}
	for i := range f.Tasks {
		t := &f.Tasks[i]
		id := taskID(f.Step, t)
		if _, done := f.Done[id]; done || !slices.Contains(g.Nodes, t.Node) {
			continue
		}
		if child := g.Child(t.Node); child != nil {
			w.walkFrame(path+id+"/", public+t.Node+"/", child)
		}
		for _, below := range w.named[path+id] {
			w.compareChild(g, t.Node, below, public+t.Node+"/"+strings.TrimSuffix(below[len(path+id)+1:], "/"))
		}
	}
}

// compareChild compares one named child. The journal does not record its kind: one of the
// graphs must be the one that it was started with.
func (w *childWalk) compareChild(g *Graph, node, path, public string) {
	f := w.state.Frames[path]
	kinds := g.Kinds(node)
	for _, kind := range kinds {
		if child := g.Named(node, kind); child.IsRecorded(f.Digest) {
			w.walkFrame(path, public+"/", child)
			return
		}
	}
	is := nameGraphs(g, node, kinds, func(child *Graph) string { return child.Digest })
	agreed := w.agreed(path)
	if f.Returned || agreed == strconv.Quote(is) || agreed == strconv.Quote(nameGraphs(g, node, kinds, func(child *Graph) string { return child.Before })) {
		return
	}
	w.changed = append(w.changed, ChangedChild{path, public, f.Digest, is})
}

// nameGraphs names all graphs of named children, by their digests.
func nameGraphs(g *Graph, node string, kinds []string, digest func(*Graph) string) string {
	h := sha256.New()
	for _, kind := range kinds {
		_, _ = io.WriteString(h, fmt.Sprintf("%q\n", []string{kind, digest(g.Named(node, kind))}))
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}
