package graph

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strconv"
	"strings"

	"raddle.dev/graph/internal/wire"
)

// compareGraphs compares the graphs with those that the run was started with, and returns
// the records of the caller's consent for the journal.
func (x *drive) compareGraphs(s *replay, accept bool) (consents []Record, err error) {
	g, raw := x.r.Graph, s.ensureFrame("")
	if raw.digest != g.digest {
		e := &ChangedError{Thread: x.thread, Was: raw.digest, Is: g.digest}
		for _, t := range raw.tasks {
			if _, ok := g.byName[t.node]; !ok {
				e.Missing = append(e.Missing, t.node)
			}
		}
		if !accept || e.Missing != nil {
			return nil, e
		}
	}
	w := comparison{replay: s, named: s.childPathsByTask()}
	if w.named == nil {
		return nil, nil
	}
	if f := s.frames[sharedPath]; f != nil {
		w.agreed = f.effects
	}
	w.walkFrame("", "", g)
	for _, c := range w.changes {
		if !accept {
			c.Thread = x.thread
			return nil, &c.ChangedError
		}
		consents = append(consents, Record{Kind: KindEffect, Head: wire.PutTexts(nil, sharedPath, c.consent), Data: []byte(strconv.Quote(c.Is))})
	}
	return consents, nil
}

// comparison walks through the frames that have not ended and compares the graphs of
// named children with those that the nodes have now. Those of a ChildGraph with OutsideDigest are
// not part of the digest of the run's graph.
type comparison struct {
	*replay
	named   map[string][]string // children, by task
	agreed  map[string][]byte   // what the caller has consented to before
	changes []change
}

type change struct {
	ChangedError
	consent string // the journal's key for the consent
}

func (w *comparison) walkFrame(path, public string, g *Graph) {
	f := w.frames[path]
	if f == nil {
		return
	}
	for _, t := range f.tasks {
		id := fmt.Sprintf("%d.%s.%d", f.step, t.node, t.index)
		at, known := g.byName[t.node]
		if _, done := f.done[id]; done || !known || at == end {
			continue
		}
		n := &g.nodes[at]
		if n.Graph != nil {
			w.walkFrame(path+id+"/", public+t.node+"/", n.Graph)
		}
		for _, below := range w.named[path+id] {
			w.compareChild(n, below, public+t.node+"/"+strings.TrimSuffix(below[len(path+id)+1:], "/"))
		}
	}
}

// compareChild compares one named child. The journal does not record its kind: one of the
// graphs must be the one that it was started with.
func (w *comparison) compareChild(n *cnode, path, public string) {
	f := w.frames[path]
	for _, kind := range sortedKeys(n.Children) {
		if g := n.Children[kind].Graph; g.digest == f.digest {
			w.walkFrame(path, public+"/", g)
			return
		}
	}
	c := change{ChangedError{Child: public, Was: f.digest, Is: n.childDigest()}, "\x00graph\x00=" + path}
	if !f.returned && string(w.agreed[c.consent]) != strconv.Quote(c.Is) {
		w.changes = append(w.changes, c)
	}
}

// childDigest identifies all graphs of named children.
func (n *cnode) childDigest() string {
	h := sha256.New()
	for _, kind := range sortedKeys(n.Children) {
		_, _ = io.WriteString(h, fmt.Sprintf("%q\n", []string{kind, n.Children[kind].Graph.digest}))
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// ChangedError says that the graph that is to continue a run is not the one that
// started it.
type ChangedError struct {
	Thread  string
	Was, Is string   // digests
	Missing []string // nodes that the run is about to execute and that the graph no longer has
	Child   string   // the path of the named child whose graph has changed; empty: the run's own graph
}

func (e *ChangedError) Error() string {
	s := fmt.Sprintf("thread %s was started with graph %s, which is now %s", e.Thread, e.Was, e.Is)
	switch {
	case e.Child != "":
		s = fmt.Sprintf("thread %s: its child %s was started with graph %s, which no longer exists", e.Thread, e.Child, e.Was)
	case len(e.Missing) > 0:
		return s + "; it no longer has " + strings.Join(e.Missing, ", ")
	}
	return s + "; set AcceptChanges to continue with what there is now"
}
