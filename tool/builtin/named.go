package builtin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/tool"
)

// otherTools are tools that agents of similar programs have and raddle does not, with a definition
// that touches the same.
var otherTools = map[string]definition{
	"execute_js_code": {
		params: []param{{name: "code", required: true}},
		touches: func(_ Host, a arguments) (tool.Touch, error) {
			return tool.Touch{Commands: []string{"node -e " + shellQuote(a["code"])}}, nil
		},
	},
	"web_search_aichat": anyHost("query"), "web_search_loki": anyHost("query"), "web_search_cohere": anyHost("query"), "web_search": anyHost("query"),
}

func anyHost(argument string) definition {
	return definition{
		params:  []param{{name: argument, required: true}},
		touches: func(Host, arguments) (tool.Touch, error) { return tool.Touch{Network: []string{"*"}}, nil },
	}
}

// TouchesNamed returns what calls touch of a tool that has the name of a built-in one
// but is not raddle's own, such as a script execute_command.sh: what the
// built-in tool would touch with the same arguments. If a call has arguments that the
// built-in tool does not have, its Touch.Unknown says so. ok is false for other names.
func TouchesNamed(name string, h Host) (touches func(args json.RawMessage) (tool.Touch, error), ok bool) {
	name = strings.ReplaceAll(name, "-", "_")
	d, ok := otherTools[name]
	if i := slices.IndexFunc(definitions, func(d definition) bool { return d.name == name }); i >= 0 {
		d = definitions[i]
		ok = true
	}
	if !ok {
		return nil, false
	}
	h.Hidden = nil // a script leaves nothing out
	return func(raw json.RawMessage) (tool.Touch, error) {
		a, err := d.parseForeign(raw)
		if err == nil && d.touches != nil {
			var touch tool.Touch
			if touch, err = d.touches(h, a); err == nil {
				return touch, nil
			}
		}
		if err != nil {
			return tool.Touch{Unknown: "has the name of a built-in tool, and cannot be judged like it: " + err.Error()}, nil
		}
		return tool.Touch{}, nil
	}, true
}

// parseForeign reads the arguments of a call of a script. A list of one value counts as the
// value, as in scripts.
func (d definition) parseForeign(raw json.RawMessage) (arguments, error) {
	given := map[string]json.RawMessage{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil {
			return nil, fmt.Errorf("the arguments are not a JSON object")
		}
	}
	for name, value := range given {
		known := slices.ContainsFunc(d.params, func(p param) bool {
			return name == p.name || p.alias != "" && name == p.alias || name == strings.ReplaceAll(p.name, "_", "-")
		})
		if !known {
			return nil, fmt.Errorf("it does not know the argument %s", name)
		}
		var items []json.RawMessage
		if json.Unmarshal(value, &items) == nil && len(items) == 1 {
			value = items[0]
		}
		var v any
		if json.Unmarshal(value, &v) != nil {
			return nil, fmt.Errorf("the argument %s is not JSON", name)
		}
		if text, ok := v.(string); ok && name != "contents" && name != "content" {
			var inner any // a function that declares a list or an object gets that of a text with its JSON
			if json.Unmarshal([]byte(text), &inner) == nil {
				v = inner
			}
		}
		switch v.(type) {
		case []any, map[string]any:
			return nil, fmt.Errorf("the argument %s is not a text", name)
		}
		given[name] = value
	}
	plain, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	return parseArguments(d.params, plain)
}
