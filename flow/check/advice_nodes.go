package check

import (
	"fmt"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/jsonvalue"
)

// adviseRoutes reports a node that leads to no other node, and a next that is
// ignored.
func (a *Adviser) adviseRoutes(n *spec.Node) {
	if !a.reached[n.ID] {
		return
	}
	switch r := n.Type.Routing; {
	case r.IgnoresNext():
		if n.Next != nil {
			a.WarnAt(n, n.At("next"), "next-ignored", fmt.Sprintf("`next` of an %s node is not followed", n.Kind()), "remove it")
		}
		return
	case n.Next == nil && r != spec.RouteAny && n.ID != a.File.Finally:
		a.WarnAt(n, n.Pos(), "missing-next", fmt.Sprintf("%s node has no `next`: the run fails when the node succeeds", n.Kind()), "add `next: <node>`")
	}
	if n.Next != nil && len(n.Next) == 0 {
		a.WarnAt(n, n.At("next"), "missing-next", "`next` is an empty list: the run fails after this node", "name a node, or remove `next`")
	}
	if n.Type.Routing == spec.RouteFirst && len(n.Next) > 1 {
		a.WarnAt(n, n.At("next"), "next-ignored", fmt.Sprintf("an %s node goes to the first node of its `next` only", n.Kind()), "")
	}
}

// WarnZero reports a time or a count of zero, if is is true, and its effect.
func (a *Adviser) WarnZero(n *spec.Node, field string, is bool, effect string) {
	if is {
		a.WarnAt(n, n.At(field), "zero-limit", fmt.Sprintf("`%s` is 0: %s", field, effect), "")
	}
}

// EndsAtOnce is the effect of a timeout of zero, for [Adviser.WarnZero].
const EndsAtOnce = "the node times out at once"

// adviseSchema reports an output_schema that is not a schema.
func (a *Adviser) adviseSchema(n *spec.Node) {
	schema := n.OutputSchema
	if _, ok := schema.(*jsonvalue.Object); schema != nil && !ok {
		a.WarnAt(n, n.At("output_schema"), "output-schema", fmt.Sprintf("`output_schema` is %s, not a map", jsonvalue.TypeName(schema)), "write a JSON schema: `type: object` and `properties`")
	}
}

// fanOuts reports parallel branches that always conflict.
func (a *Adviser) fanOuts() {
	for _, g := range fanOutGroups(a.File) {
		ends := 0
		by := map[string]*spec.Node{} // maps by the key they collect into
		for _, n := range g.members {
			if n.Type.Routing == spec.RouteEnd {
				ends++
			}
			if b := n.Branch; b != nil {
				if other := by[b.CollectInto]; other != nil && a.File.Reducer(b.CollectInto) == "" {
					a.WarnAt(n, n.At("collect_into"), "parallel-collect",
						fmt.Sprintf("nodes '%s' and '%s' run at the same time and both write `%s`, which has no reducer", other.ID, n.ID, b.CollectInto), "collect into different keys")
				}
				by[b.CollectInto] = n
			}
		}
		if ends > 1 {
			a.WarnAt(g.from, g.from.At("next"), "parallel-ends", "`next` leads to several end nodes at once: the run fails there", "let the branches meet in one node")
		}
	}
}
