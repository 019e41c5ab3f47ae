package agent

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"raddle.dev/graph"
	"raddle.dev/tool"
)

// Kits let a model take up further tools while it works and put them away again, such as those of skills. Which of them
// it has is recorded with the outcome of the call that changed it: a run that is resumed, replayed or forked sends the
// same tools. The zero value has none.
type Kits struct {
	// Change returns the kits that a call has taken up, by their names, if it did not fail; one that is empty puts its
	// tools away. nil: no call changes them. It must be pure.
	Change func(name string, args json.RawMessage) map[string]Kit
	// Tools returns the tools that a name in a Kit means; none if they do not exist here.
	Tools func(name string) []tool.Tool
	// Sources returns the sources with these names: those of the node, and then those of kits.
	Sources func(names []string) Sources
}

// A Kit is a set of tools and of sources of tools, by their names.
type Kit struct {
	Tools   []string `json:"tools,omitempty"`
	Sources []string `json:"sources,omitempty"`
}

// joinSources returns the sources of a node with those of the kits in use.
func (k *Kits) joinSources(own Sources, s graph.State) Sources {
	if k.Change == nil || k.Sources == nil {
		return own
	}
	names := slices.Clone(own.Names)
	kits := InUse.Get(s)
	for _, kit := range slices.Sorted(maps.Keys(kits)) {
		for _, name := range kits[kit].Sources {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == len(own.Names) {
		return own
	}
	return k.Sources(names)
}

// joinTools returns a function that lists the tools of the kits in use after further ones; nil: there are none.
func (k *Kits) joinTools(s graph.State, more func(context.Context) ([]tool.Tool, error)) func(context.Context) ([]tool.Tool, error) {
	if k.Change == nil || k.Tools == nil {
		return more
	}
	kits := InUse.Get(s)
	var brought []tool.Tool
	for _, kit := range slices.Sorted(maps.Keys(kits)) {
		for _, name := range kits[kit].Tools {
			brought = append(brought, k.Tools(name)...)
		}
	}
	if len(brought) == 0 {
		return more
	}
	return func(ctx context.Context) (list []tool.Tool, err error) {
		if more != nil {
			list, err = more(ctx)
		}
		return append(list, brought...), err
	}
}

// noteKits adds what a call has changed about the kits, if it did not fail.
func (st *actStep) noteKits(t tool.Tool, c tool.Call, r *tool.Result) {
	if st.act.Kits.Change == nil || r.Error {
		return
	}
	changed := st.act.Kits.Change(t.Name, c.Args)
	st.mu.Lock()
	defer st.mu.Unlock()
	for name, kit := range changed {
		if st.newKits == nil {
			st.newKits = map[string]Kit{}
		}
		st.newKits[name] = kit
	}
}
