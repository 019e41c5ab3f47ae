package provider

import (
	"slices"
	"strings"
)

// Model is a model that can be called, as it is shown to a person.
type Model struct {
	ID     string   `json:"id"`         // CLIENT:MODEL; only CLIENT: if no model is known by name
	Window int      `json:"window"`     // tokens; 0 if unknown
	Input  *float64 `json:"input_usd"`  // of a million tokens; null if unknown
	Output *float64 `json:"output_usd"` // of a million tokens; null if unknown
}

// vendors maps the vendors to the prefixes of their models' names in the catalogue.
var vendors = map[string][]string{
	"anthropic": {"claude-"}, "gemini": {"gemini-"}, "openai": {"gpt-", "o3", "o4"},
}

// ListModels returns the models of the clients that are ready, those that the
// configuration names first.
func (r *Resolver) ListModels() []Model {
	list := []Model{}
	for _, c := range r.ListClients() {
		if !c.Ready {
			continue
		}
		names := c.Models
		if len(names) == 0 {
			names = catalogueNames(c.Client)
		}
		if len(names) == 0 {
			names = []string{""}
		}
		for _, name := range names {
			id := c.Client + ":" + name
			list = append(list, r.describeModel(id, name))
		}
	}
	return list
}

// ListNamed returns the models of ListModels that have a name. A client of which none is known by name is not there.
func (r *Resolver) ListNamed() []Model {
	return slices.DeleteFunc(r.ListModels(), func(m Model) bool { return strings.HasSuffix(m.ID, ":") })
}

func catalogueNames(client string) (names []string) {
	for _, m := range catalogue {
		for _, prefix := range vendors[client] {
			if strings.HasPrefix(m.name, prefix) {
				names = append(names, m.name)
			}
		}
	}
	return names
}

func (r *Resolver) describeModel(id, name string) Model {
	info := Model{ID: id}
	if name == "" {
		return info
	}
	info.Window = r.Facts("", id).Window
	if price, known := r.modelPrice(name); known {
		info.Input, info.Output = &price.Input, &price.Output
	}
	return info
}
