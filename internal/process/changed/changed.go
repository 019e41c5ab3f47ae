// Package changed says in detail what differs between the files of an agent and those that a run started with, and which lines of a
// graph.yaml continue the run.
package changed

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
)

// kinds are the words for fields of nodes and of agents; others are named by themselves.
var kinds = map[string]string{
	"instructions": "prompt", "output_schema": "schema", "schema": "schema", "next": "edge", "routes": "edge", "fallback": "edge", "on_other": "edge",
}

// ignored are fields of the top level that no run depends on.
var ignored = []string{"description", "migrations", "triggers", "conversation_starters"}

// CompareDefinitions compares two texts of a graph.yaml or config.yaml: it names keys, nodes and edges, and fields of nodes such as prompts, schemas and models.
func CompareDefinitions(was, is string) (changes []graph.Change) {
	before := readDefinition(was)
	after := readDefinition(is)
	if before == nil || after == nil {
		if was != is {
			return []graph.Change{{Kind: "file", Was: "another text", Is: "one that cannot be read as YAML"}}
		}
		return nil
	}
	add := func(kind, name string, was, is any, had, has bool) {
		c := graph.Change{Kind: kind, Name: name}
		if had {
			c.Was = cmp.Or(describeValue(was), "empty")
		}
		if has {
			c.Is = cmp.Or(describeValue(is), "empty")
		}
		if c.Was == c.Is && had && has { // what differs is behind the part that is shown
			c.Is += " (differs further on)"
		}
		changes = append(changes, c)
	}
	eachDifference(before, after, func(field string, was, is any, had, has bool) {
		switch {
		case slices.Contains(ignored, field):
		case field == "nodes":
			eachDifference(was, is, func(node string, was, is any, had, has bool) {
				if !had || !has {
					add("node", node, typeOf(was), typeOf(is), had, has)
					return
				}
				eachDifference(was, is, func(field string, was, is any, had, has bool) {
					kind := cmp.Or(kinds[field], field)
					name := node
					if kind != field {
						name += "." + field
					}
					add(kind, name, was, is, had, has)
				})
			})
		case field == "reducers" || field == "initial_state":
			eachDifference(was, is, func(key string, was, is any, had, has bool) {
				if field == "initial_state" {
					key += " (initial state)"
				}
				add("key", key, was, is, had, has)
			})
		default:
			add(cmp.Or(kinds[field], field), "", was, is, had, has)
		}
	})
	return changes
}

// readDefinition returns the fields of a text; nil: it is no map.
func readDefinition(text string) *jsonvalue.Object {
	d := strictyaml.Read("", []byte(text))
	if d.Fatal || d.Root == nil {
		return nil
	}
	o, _ := strictyaml.DecodeValue(d.Root).(*jsonvalue.Object)
	return o
}

// eachDifference calls f for each member that differs between two values, if both are objects: in the order of the newer one, and then what
// is gone.
func eachDifference(was, is any, f func(name string, was, is any, had, has bool)) {
	before, _ := was.(*jsonvalue.Object)
	after, _ := is.(*jsonvalue.Object)
	if before == nil {
		before = jsonvalue.NewObject()
	}
	if after == nil {
		after = jsonvalue.NewObject()
	}
	for name, v := range after.All() {
		old, had := before.Get(name)
		if !had || !jsonvalue.Equal(old, v) {
			f(name, old, v, had, true)
		}
	}
	for name, old := range before.All() {
		if _, has := after.Get(name); !has {
			f(name, old, nil, true, false)
		}
	}
}

func typeOf(node any) any {
	o, _ := node.(*jsonvalue.Object)
	if o == nil {
		return nil
	}
	kind, _ := o.Get("type")
	return kind
}

// describeValue returns a short text for a value.
func describeValue(v any) string {
	const most = 60
	if v == nil {
		return ""
	}
	text, ok := v.(string)
	if !ok {
		b, err := jsonvalue.Append(nil, v)
		if err != nil {
			return "a value"
		}
		text = string(bytes.TrimSpace(b))
	}
	return wording.CutText(strings.Join(strings.Fields(text), " "), most, "…")
}

// Lines returns what to add to the graph.yaml so that runs with these needs continue; "": nothing of it helps. A name that is not known is NEW.
func Lines(needs []graph.Need) string {
	var nodes, keys, conversions []string
	from := ""
	for _, n := range needs {
		if n.Graph != "" || n.Kind == "join" {
			continue // it is about another file, or no line helps
		}
		from = n.From
		as := cmp.Or(n.As, "NEW")
		switch {
		case n.Kind == "node":
			nodes = append(nodes, fmt.Sprintf("%s: %s", n.Name, as))
		case n.Kind == "key" && as == n.Name:
			conversions = append(conversions, fmt.Sprintf("%s: \"{{%s}}\"", n.Name, n.Name))
		case n.Kind == "key":
			keys = append(keys, fmt.Sprintf("%s: %s", n.Name, as))
		}
	}
	if from == "" {
		return ""
	}
	lines := "migrations:\n  - from: " + quoteHash(from)
	for _, f := range []struct {
		name string
		list []string
	}{{"rename_node", nodes}, {"rename_key", keys}, {"convert_key", conversions}} {
		if f.list != nil {
			lines += fmt.Sprintf("\n    %s: {%s}", f.name, strings.Join(f.list, ", "))
		}
	}
	return lines
}

// quoteHash returns a hash as YAML reads it as a text.
func quoteHash(hash string) string {
	if strings.Trim(hash, "0123456789e") == "" {
		return `"` + hash + `"`
	}
	return hash
}
