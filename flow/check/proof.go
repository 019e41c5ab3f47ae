package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
)

// The template proof is a data-flow analysis: for every node it computes the
// set of keys that are not set on some path from the start. It follows what a
// run can do (the next of an approval is not a path, the fallback of an llm
// node is one) and treats every uncertain key as set: a script that succeeds
// may have set any key, and parallel branches all keys that they may set.
//
// A node sets the keys of its state_updates. An llm or agent node that succeeds
// also sets the properties of its output_schema, and a map sets collect_into and
// the key of its counts. A failure is followed if the file declares where it leads. A script or llm node
// without fallback continues with next after a failure; this is not followed,
// because then every use of its results would be reported.

// maxProof is how many placeholders without a value are listed, each with its
// path.
const maxProof = 100

// ProvePlaceholders reports placeholders in strict fields that have no value on some path
// from the start node, and names the shortest such path. All findings are
// warnings. What it reports is certain as far as the file says; a placeholder
// that is not reported may still have no value.
func ProvePlaceholders(f *spec.File) []strictyaml.Finding {
	p := newProver(f)
	p.findMisses()
	return p.Findings
}

// read is a placeholder in a strict field.
type read struct {
	node int
	use  spec.TemplateUse
	path *spec.Path
	key  int // index in prover.keys
}

// prover contains a graph as indices: nodes in file order, keys in order of
// their first strict use.
type prover struct {
	strictyaml.Report
	f       *spec.File
	index   map[string]int
	keys    []string
	keyAt   map[string]int
	reads   []read
	exits   [][]exit
	free    []bool // nodes that may set any key
	regions *regions
	sets    [3][]setKey   // by kind: updates, properties, collect_into
	bySet   [3][][]setKey // the same, in groups of 64 keys
	found   []miss

	settable map[string]bool // keys that are known to be set somewhere
}

// setKey is a key that a node sets.
type setKey struct{ node, key int }

// These are the kinds of prover.sets.
const (
	byUpdates = iota
	byProperties
	byCollect
)

// exit is a way to leave a node, and what is set on it.
type exit struct {
	to  int
	any bool   // a script ran, or a model replied without a schema: any key may be set
	by  []byte // the kinds of keys that are set
}

// miss is a read that has no value on some path.
type miss struct {
	read read
	via  int // the map node that runs the reader as its branch, or -1
}

// newProver returns a prover for the keys that the file's strict fields read, and for others.
func newProver(f *spec.File, others ...string) *prover {
	p := &prover{
		Report: strictyaml.Report{Class: strictyaml.ClassProof},
		f:      f, index: map[string]int{}, keyAt: map[string]int{}, exits: make([][]exit, len(f.Nodes)), free: make([]bool, len(f.Nodes)),
	}
	p.settable = settableKeys(f)
	for i, n := range f.Nodes {
		p.index[n.ID] = i
	}
	for _, key := range others {
		p.keyAt[key] = len(p.keys)
		p.keys = append(p.keys, key)
	}
	for i, n := range f.Nodes {
		p.exits[i] = p.exitsOf(n)
		p.free[i] = n.WritesAnyKey()
		p.addReads(i, n)
	}
	for i, n := range f.Nodes {
		p.addSets(i, n)
	}
	p.regions = p.findRegions()
	return p
}

// exitsOf returns the ways to leave a node at run time.
func (p *prover) exitsOf(n *spec.Node) []exit {
	var list []exit
	for _, e := range n.FollowedEdges() {
		to, ok := p.index[e.To]
		switch {
		case !ok:
		case e.Role != spec.EdgeFailure:
			list = append(list, exit{to: to, any: n.WritesAnyKey(), by: []byte{byUpdates, byProperties, byCollect}})
		case e.Updates:
			list = append(list, exit{to: to, by: []byte{byUpdates}})
		default:
			list = append(list, exit{to: to})
		}
	}
	return list
}

// addReads collects the strict placeholders of a node, each key once.
func (p *prover) addReads(i int, n *spec.Node) {
	seen := map[string]bool{}
	settable := p.settable
	for _, u := range n.Templates {
		for _, part := range u.Template.Parts {
			if !u.Strict || part.Path == nil || part.Path.Never {
				continue
			}
			key := part.Path.Root
			if scope, _ := part.Path.ScopedKey(); scope != "" && !settable[key] {
				continue
			}
			if _, initial := p.f.InitialState.Get(key); initial || key == spec.PromptKey || seen[key] {
				continue
			}
			seen[key] = true
			at, ok := p.keyAt[key]
			if !ok {
				at = len(p.keys)
				p.keyAt[key] = at
				p.keys = append(p.keys, key)
			}
			p.reads = append(p.reads, read{i, u, part.Path, at})
		}
	}
}

// addSets collects the keys that a node sets and another node reads.
func (p *prover) addSets(i int, n *spec.Node) {
	add := func(kind int, key string) {
		if at, ok := p.keyAt[key]; ok {
			p.sets[kind] = append(p.sets[kind], setKey{i, at})
		}
	}
	for _, u := range n.Updates {
		add(byUpdates, u.Key)
	}
	for _, key := range n.SchemaProperties() {
		add(byProperties, key)
	}
	if n.Branch != nil {
		add(byCollect, n.Branch.CollectInto)
		add(byCollect, n.CountsKey())
	}
}

// reportMiss adds the finding for a miss.
func (p *prover) reportMiss(m miss, l *locator) {
	n := p.f.Nodes[m.read.node]
	way := p.pathTo(m)
	if way == nil {
		return
	}
	key := p.keys[m.read.key]
	p.Add(strictyaml.Finding{
		Severity: strictyaml.SeverityWarning, Code: "template-unassigned", Node: n.ID,
		Message: fmt.Sprintf("`%s` reads {{%s}}, but nothing sets `%s` on the path %s",
			m.read.use.Field, m.read.path.Text, key, wayText(way)),
		Hint: p.missHint(key), Pos: l.locatePlaceholder(n, m.read.use, m.read.path),
		Certain: !p.settable[key] && !slices.Contains(p.free, true),
	})
}

func (p *prover) missHint(key string) string {
	if p.f.Kinds.IsScoped(key) {
		return fmt.Sprintf("{{%s}} exists only inside state_updates: store it under a key of your own there", key)
	}
	if p.settable[key] {
		return "give it a value in initial_state, or set it on that path"
	}
	if hint := wording.SuggestNearest(key, slices.Sorted(maps.Keys(p.settable)), "`"); hint != "" {
		return hint
	}
	return "give it a value in initial_state: no node sets it"
}

// wayText returns a path as text, shortened in the middle if it is long.
func wayText(ids []string) string {
	const keep = 6
	if len(ids) > 2*keep+1 {
		ids = append(append(append([]string{}, ids[:keep]...),
			fmt.Sprintf("... (%d more)", len(ids)-2*keep)), ids[len(ids)-keep:]...)
	}
	return strings.Join(ids, " -> ")
}
