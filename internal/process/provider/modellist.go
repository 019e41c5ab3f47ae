package provider

import (
	"slices"
	"strings"

	"raddle.dev/internal/storage/config"
)

// Model is a model that can be called, as it is shown to a person.
type Model struct {
	ID     string   `json:"id"`         // CLIENT:MODEL; only CLIENT: if no model is known by name
	Window int      `json:"window"`     // tokens; 0 if unknown
	Input  *float64 `json:"input_usd"`  // of a million tokens; null if unknown
	Output *float64 `json:"output_usd"` // of a million tokens; null if unknown
}

// ListModels returns the models of the clients that are ready, those that the
// configuration names first.
func (r *Resolver) ListModels() []Model {
	list := []Model{}
	for i := range r.clients {
		c := &r.clients[i]
		if !c.isReady() {
			continue
		}
		var names []string
		for _, model := range c.Models {
			names = append(names, model.Name)
		}
		if len(names) == 0 && isMaker(c.listedName()) {
			names = r.known.openFile().List(c.listedName())
		}
		if len(names) == 0 {
			names = []string{""}
		}
		for _, name := range names {
			list = append(list, r.describeModel(c.Name+":"+name, name))
		}
	}
	return list
}

// isMaker reports whether the catalogue has the models of a maker under a name.
func isMaker(listed string) bool {
	return slices.ContainsFunc(config.Providers, func(p config.Provider) bool { return p.Maker && p.Listed == listed })
}

// ListNamed returns the models of ListModels that have a name. A client of which none is known by name is not there.
func (r *Resolver) ListNamed() []Model {
	return slices.DeleteFunc(r.ListModels(), func(m Model) bool { return strings.HasSuffix(m.ID, ":") })
}

func (r *Resolver) describeModel(id, name string) Model {
	info := Model{ID: id}
	if name == "" {
		return info
	}
	facts := r.Facts("", id)
	info.Window = facts.Window
	if !facts.IsUnpriced() {
		info.Input = &facts.Price.Input
		info.Output = &facts.Price.Output
	}
	return info
}
