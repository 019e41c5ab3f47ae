package structure

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Change is one difference between two graphs. Graph is the path of the child graph that it is in, in the form of
// Recorded.Keys; "": the graph itself. Was and Is describe the thing before and after; one of them is empty if it is not there.
type Change struct {
	Graph, Kind, Name, Was, Is string
}

// The kinds of changes.
const (
	ChangedKey     = "key"
	ChangedNode    = "node"
	ChangedEdge    = "edge"
	ChangedStart   = "start"
	ChangedFinally = "finally"
	ChangedVersion = "version"
)

// outline is what graph.Structure has, as far as it is compared.
type outline struct {
	Name    string   `json:"name"`
	Start   []string `json:"start"`
	Finally string   `json:"finally"`
	Nodes   []node   `json:"nodes"`
	Edges   []edge   `json:"edges"`
}

type node struct {
	Name     string             `json:"name"`
	Kind     string             `json:"kind"`
	AnyRoute bool               `json:"any_route"`
	Child    *outline           `json:"child"`
	Children map[string]outline `json:"children"`
}

type edge struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Label string `json:"label"`
	Kind  string `json:"kind"`
	Join  int    `json:"join"`
}

// CompareGraphs returns what differs between two graphs in the form of PackGraph: first what the graph itself differs in, then its children. known reports that both are known.
// Of a graph that was too large for its journal, only what is left of it is compared.
func CompareGraphs(was, is []byte) (changes []Change, known bool) {
	before, err := UnpackGraph[outline](was)
	if before == nil || err != nil {
		return nil, false
	}
	after, err := UnpackGraph[outline](is)
	if after == nil || err != nil {
		return nil, false
	}
	c := &comparison{was: before, is: after, whole: !before.Cut && !after.Cut}
	c.compareOutlines("", &before.Graph, &after.Graph)
	return c.changes, true
}

// comparison compares two graphs and their children.
type comparison struct {
	was, is *Recorded[outline]
	whole   bool // keys and children are known
	changes []Change
}

func (c *comparison) addChange(graph, kind, name, was, is string) {
	if was != is {
		c.changes = append(c.changes, Change{graph, kind, name, was, is})
	}
}

func (c *comparison) compareOutlines(path string, was, is *outline) {
	if before, known := c.was.Versions[path]; known || c.was.Versions != nil {
		c.addChange(path, ChangedVersion, "", before, c.is.Versions[path])
	}
	if c.whole {
		c.compareKeys(path)
	}
	list := func(path, kind string, was, is map[string]string) {
		for _, name := range unite(was, is) {
			c.addChange(path, kind, name, was[name], is[name])
		}
	}
	list(path, ChangedNode, was.describeNodes(), is.describeNodes())
	list(path, ChangedEdge, was.describeEdges(), is.describeEdges())
	c.addChange(path, ChangedStart, "", strings.Join(slices.Sorted(slices.Values(was.Start)), ", "), strings.Join(slices.Sorted(slices.Values(is.Start)), ", "))
	c.addChange(path, ChangedFinally, "", was.Finally, is.Finally)
	if !c.whole {
		return
	}
	before := was.listChildren(path)
	after := is.listChildren(path)
	for _, below := range slices.Sorted(maps.Keys(before)) {
		if child := after[below]; child != nil {
			c.compareOutlines(below, before[below], child)
		}
	}
}

func (c *comparison) compareKeys(path string) {
	was := keysByName(c.was.Keys[path])
	is := keysByName(c.is.Keys[path])
	for _, name := range unite(was, is) {
		before, had := was[name]
		after, has := is[name]
		switch {
		case !had:
			c.addChange(path, ChangedKey, name, "", after.describe())
		case !has:
			c.addChange(path, ChangedKey, name, before.describe(), "")
		case before.Shape != after.Shape && before.describe() == after.describe():
			c.addChange(path, ChangedKey, name, before.describe(), after.describe()+" with other fields")
		default:
			c.addChange(path, ChangedKey, name, before.describe(), after.describe())
		}
	}
}

// describe says what the key holds, and how writes are folded into it.
func (k *Key) describe() string { return k.Reducer + " of " + k.Tag }

func keysByName(keys []Key) map[string]*Key {
	by := map[string]*Key{}
	for i := range keys {
		by[keys[i].Name] = &keys[i]
	}
	return by
}

// ListReshaped returns the names of keys, of the graph and of its children, whose types do not consist of what they did: a value
// that was stored may lose something when it is read.
func ListReshaped(was, is []byte) map[string]bool {
	if bytes.Equal(was, is) {
		return nil
	}
	before, err := UnpackGraph[json.RawMessage](was)
	if before == nil || err != nil {
		return nil
	}
	after, err := UnpackGraph[json.RawMessage](is)
	if after == nil || err != nil {
		return nil
	}
	var names map[string]bool
	for path, keys := range after.Keys {
		older := keysByName(before.Keys[path])
		for _, k := range keys {
			if old := older[k.Name]; old != nil && old.Tag == k.Tag && old.Shape != k.Shape {
				if names == nil {
					names = map[string]bool{}
				}
				names[k.Name] = true
			}
		}
	}
	return names
}

// VersionAt returns the version of the graph at a path in the form of PackGraph, if that is known.
func VersionAt(packed []byte, path string) string {
	r, err := UnpackGraph[json.RawMessage](packed)
	if r == nil || err != nil {
		return ""
	}
	return r.Versions[path]
}

func (o *outline) describeNodes() map[string]string {
	by := map[string]string{}
	for _, n := range o.Nodes {
		text := cmp.Or(n.Kind, "function")
		if n.AnyRoute {
			text += " that may name every node"
		}
		if n.Child != nil {
			text += " with a graph"
		}
		for _, kind := range slices.Sorted(maps.Keys(n.Children)) {
			text += fmt.Sprintf(" with children %q", kind)
		}
		by[n.Name] = text
	}
	return by
}

func (o *outline) describeEdges() map[string]string {
	by := map[string]string{}
	joins := map[int][]string{}
	for _, e := range o.Edges {
		if e.Join > 0 {
			joins[e.Join] = append(joins[e.Join], e.From)
		}
	}
	for _, e := range o.Edges {
		name := e.From + " -> " + e.To
		if e.Label != "" {
			name += " (" + e.Label + ")"
		}
		text := e.Kind
		if e.Join > 0 {
			text += " of " + strings.Join(slices.Sorted(slices.Values(joins[e.Join])), " and ")
		}
		for n := 2; by[name] != "" && by[name] != text; n++ { // two edges of different kinds
			name = e.From + " -> " + e.To + " #" + strconv.Itoa(n)
		}
		by[name] = text
	}
	return by
}

// listChildren lists the child graphs below the nodes by their paths.
func (o *outline) listChildren(path string) map[string]*outline {
	by := map[string]*outline{}
	for i := range o.Nodes {
		n := &o.Nodes[i]
		if n.Child != nil {
			by[path+n.Name+"/"] = n.Child
		}
		for kind, child := range n.Children {
			by[path+n.Name+"#"+kind+"/"] = &child
		}
	}
	return by
}

// unite returns the names of two maps, sorted.
func unite[V any](a, b map[string]V) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}

// String says what the difference is.
func (c Change) String() string {
	thing := c.Kind
	if c.Name != "" {
		thing += " " + strconv.Quote(c.Name)
		if c.Kind == ChangedEdge {
			thing = "edge " + c.Name
		}
	}
	if c.Graph != "" {
		thing += " of the graph below " + strings.TrimSuffix(c.Graph, "/")
	}
	switch {
	case c.Kind == ChangedVersion:
		return fmt.Sprintf("%s: it was %s, and is %s", thing, shortVersion(c.Was), shortVersion(c.Is))
	case c.Was == "":
		return fmt.Sprintf("%s is new (%s)", thing, c.Is)
	case c.Is == "":
		return fmt.Sprintf("%s is gone (%s)", thing, c.Was)
	}
	return fmt.Sprintf("%s: it was %s, and is %s", thing, c.Was, c.Is)
}

// shortVersion returns enough of a version to tell it from others.
func shortVersion(v string) string {
	if len(v) == 64 && strings.Trim(v, "0123456789abcdef") == "" {
		return v[:12]
	}
	return cmp.Or(v, "none")
}
