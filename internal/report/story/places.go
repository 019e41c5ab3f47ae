package story

import (
	"slices"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/team"
)

// Places finds where the nodes of a run are in a picture of its agent: a place is the names of nodes from the outermost
// graph on, with slashes.
type Places struct {
	known map[string]bool
}

// NewPlaces returns the places of a picture.
func NewPlaces(s *graph.Structure) *Places {
	p := &Places{known: map[string]bool{}}
	p.addLevel(s, "")
	return p
}

// addLevel adds the nodes of a graph.
func (p *Places) addLevel(s *graph.Structure, prefix string) {
	for _, n := range s.Nodes {
		p.known[prefix+n.Name] = true
		if n.Child != nil {
			p.addLevel(n.Child, prefix+n.Name+"/")
		}
	}
}

func (p *Places) has(place string) bool { return p.known[place] }

// Find returns the place of a node of the run: without the numbers of branches, and branches as nodes next to their
// map. It returns "" if the picture does not show the node.
func (p *Places) Find(path string) string {
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		name, _, branch := strings.Cut(part, "[")
		if agent := team.AgentOf(part); agent != "" {
			name = agent
			parts = slices.DeleteFunc(parts, func(p string) bool { return p == team.Node })
		}
		if !p.has(strings.Join(append(slices.Clone(parts), name), "/")) && branch && len(parts) > 0 {
			parts = parts[:len(parts)-1] // the branch of a map is a node next to it
		}
		parts = append(parts, name)
	}
	if place := strings.Join(parts, "/"); p.has(place) {
		return place
	}
	return ""
}

// FindMoment returns the place of a moment, or of the nearest node around it that the picture shows.
func (p *Places) FindMoment(m *runs.Moment) string {
	path := m.Node
	if m.Kind == journal.KindEffect || m.Kind == journal.KindIntent || m.Kind == journal.KindFailure {
		path = p.effectPath(m)
		if p.has(path) {
			return path
		}
	}
	for {
		if place := p.Find(path); place != "" {
			return place
		}
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return ""
		}
		path = path[:i]
	}
}

// FindFailed returns the places of what has failed with a moment: of nodes, agents and items, and of the tools of a
// conversation. What the picture does not show is left out: the node around it may have succeeded.
func (p *Places) FindFailed(m *runs.Moment) (places []string) {
	for _, node := range m.FailedNodes {
		if place := p.Find(node); place != "" {
			places = append(places, place)
		}
	}
	if m.Call != nil && m.Failure != "" {
		if place := p.FindMoment(m); place == flow.PictureTools || strings.HasSuffix(place, "/"+flow.PictureTools) {
			places = append(places, place)
		}
	}
	return places
}

// effectPath returns the path of an effect: of a reply or a call in a conversation, the model or the tools of the
// picture.
func (p *Places) effectPath(m *runs.Moment) string {
	at := p.Find(m.Node)
	switch {
	case m.Reply != nil && p.has(joinPath(at, flow.PictureModel)) && (m.Node == "" || at != ""):
		return joinPath(m.Node, flow.PictureModel)
	case m.Call != nil && p.has(joinPath(at, flow.PictureTools)):
		return joinPath(m.Node, flow.PictureTools)
	}
	return m.Node
}
