package declare

import (
	"encoding/json"
	"strings"
)

// A Command says how to call a bash function with its arguments. Its options,
// environment and required programs include those that it inherits from the
// file's root.
type Command struct {
	Options    []Option // of @option and @flag
	Positional []Option // of @arg, in their order
	Env        []EnvVar // of @env
	Requires   []string // programs or functions that must exist, of @meta require-tools
	Dotenv     string   // file of variables to read, of @meta dotenv; empty: none
}

// An Option is one argument of a bash function.
type Option struct {
	Key   string // its property in the schema
	Name  string // as declared, with dashes: "--max-rows"
	Short string // its short name, "-m"; empty: none
	Var   string // the shell variable, "argc_max_rows"
	Flag  bool   // it has no value
	// Multi says that it may be given several times. The variable of a flag is then the
	// number of times; that of another option is an array.
	Multi     bool
	Required  bool   // it must be given, and has no default
	Delimiter string // each value is split at it; empty: not at all
	Min, Max  int    // values of one occurrence; Max below zero: no limit

	Default   Value
	Choices   []string // empty: any value, or ChoiceFn
	ChoiceFn  string   // a shell function that prints the choices, one a line
	Unchecked bool     // what ChoiceFn prints is advice only
	Env       string   // the environment variable that is used if the call sets no value; empty: none
	Notations []string // upper case, at least one unless it is a flag
	any       bool     // neither number nor choice: null is a text like any other
}

// A Value is a default: a text, or what a shell function prints.
type Value struct {
	Text  string
	Fn    string
	Given bool
}

// An EnvVar is an environment variable of a bash function.
type EnvVar struct {
	Name     string
	Required bool
	Default  Value
	Choices  []string
	ChoiceFn string // as in Option
}

// IsArray reports whether the variable is an array.
func (o Option) IsArray() bool { return !o.Flag && (o.Multi || o.Max != 1) }

// AnyText reports whether every text is a value: the option is declared as a
// single string without choices.
func (o Option) AnyText() bool { return o.any }

// Label returns the option as messages show it: "--tag [TAG]...", or "<FILE>" for @arg.
func (o Option) Label() string {
	if o.Flag {
		return o.Name
	}
	if len(o.Notations) > 1 {
		return o.Name + " <" + strings.Join(o.Notations, "> <") + ">"
	}
	n := o.Notations[0]
	if !strings.HasPrefix(o.Name, "-") && !strings.HasPrefix(o.Name, "+") { // of @arg
		if o.IsArray() {
			return "<" + n + ">..."
		}
		return "<" + n + ">"
	}
	switch {
	case o.Multi && o.Required:
		return o.Name + " <" + n + ">..."
	case o.Multi:
		return o.Name + " [" + n + "]..."
	}
	return o.Name + " <" + n + ">"
}

// variableName returns the name of an option's shell variable. Signs that no variable
// may have become underscores.
func variableName(id string) string {
	return "argc_" + strings.Map(func(r rune) rune {
		if r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, id)
}

// deriveFields derives what follows from an option's name, prefix and notations.
func (o *Option) deriveFields(prefix, name string) {
	id := name
	if prefix == "+" {
		id = "plus_" + name
	}
	o.Name, o.Var, o.Key = prefix+name, variableName(id), strings.ReplaceAll(id, "-", "_")
	if o.Flag {
		return
	}
	if len(o.Notations) == 0 {
		o.Notations = []string{name}
	}
	for i, n := range o.Notations {
		o.Notations[i] = strings.ReplaceAll(strings.ToUpper(n), "_", "-")
	}
	n := len(o.Notations)
	rest := o.Max < 0
	o.Min = n
	o.Max = n
	switch last := o.Notations[n-1]; {
	case rest || strings.HasSuffix(last, "+"):
		o.Max = -1
	case strings.HasSuffix(last, "*"):
		o.Min = n - 1
		o.Max = -1
	case strings.HasSuffix(last, "?"):
		o.Min = n - 1
	}
}

// buildProperty returns the option as a model sees it. The choices of a list are those of its items.
func (o *Option) buildProperty(description string) property {
	p := property{name: o.Key, schema: schema{kind: "string", description: description, enum: textsJSON(o.Choices)}}
	switch {
	case o.Flag:
		p.kind = "boolean"
	case o.IsArray():
		p.kind, p.enum, p.items = "array", nil, &schema{kind: "string", enum: p.enum}
		if !o.Multi {
			p.minItems = o.Min
			p.maxItems = max(o.Max, 0)
		}
	case o.Number() != "":
		p.kind = o.Number()
	}
	o.any = p.kind == "string" && len(o.Choices) == 0 && o.ChoiceFn == ""
	return p
}

// Number returns the type of an option whose only value is a number, "integer" or "number"; empty: it is none.
func (o Option) Number() string {
	if o.Flag || o.IsArray() || len(o.Choices) > 0 {
		return ""
	}
	return map[string]string{"INT": "integer", "NUM": "number"}[o.Notations[0]]
}

// FitNumber returns the text of a number as the option takes it: a whole number without a fraction. ok is false if the
// option takes numbers and the text is none.
func (o Option) FitNumber(text string) (fitted string, ok bool) {
	kind := o.Number()
	if kind == "" {
		return text, true
	}
	s := schema{kind: kind}
	raw, ok := s.fitScalar(json.RawMessage(textJSON(text)))
	return string(raw), ok
}
