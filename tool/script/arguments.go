package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"raddle.dev/tool/declare"
)

// A bashCall is the list of instructions for run.sh: words that end with NUL.
type bashCall struct {
	words bytes.Buffer
	line  []string // the arguments as a command line would have them
	wrong string   // the first thing that is wrong with the arguments
}

// addInstruction appends one instruction.
func (b *bashCall) addInstruction(word, name string, values ...string) {
	for _, w := range append([]string{word, name, strconv.Itoa(len(values))}, values...) {
		if strings.Contains(w, "\x00") {
			b.refuseCall("error: an argument holds a NUL character, which a bash tool cannot take")
		}
		b.words.WriteString(w)
		b.words.WriteByte(0)
	}
}

func (b *bashCall) refuseCall(format string, args ...any) {
	if b.wrong == "" {
		b.wrong = fmt.Sprintf(format, args...)
	}
}

// bashCall returns the instructions for run.sh, or what is wrong with the arguments.
func (r *scriptCall) bashCall(env *environment) (instructions []byte, wrong string) {
	b := &bashCall{line: []string{strings.TrimSuffix(filepath.Base(r.file), filepath.Ext(r.file))}}
	if r.Agent {
		b.line = append(b.line, r.Function)
	}
	given := r.givenArguments(b)
	for _, o := range r.Command.Options {
		raw, ok := given[o.Var]
		if !ok || !b.addOption(o, raw) {
			b.addAbsent(o)
		}
	}
	b.addPositional(r.Command.Positional, given, r.positional, env)
	for _, v := range r.Command.Env {
		b.addEnv(v)
	}
	for _, name := range r.Command.Requires {
		b.addInstruction("tool", name)
	}
	b.addInstruction("arguments", "argc__args", b.line...)
	b.addInstruction("function", r.Function)
	return b.words.Bytes(), b.wrong
}

// addPositional sets the values of @arg: those that a call gives by their names, or the words of a command line in
// their order. A value that is missing before one that is given is an empty word.
func (b *bashCall) addPositional(list []declare.Option, given map[string]json.RawMessage, words []string, env *environment) {
	last := -1 // the one that the call gives
	for i, p := range list {
		if _, ok := b.argumentValues(p, given[p.Var]); ok {
			last = i
		}
	}
	for i, p := range list {
		values, ok := b.argumentValues(p, given[p.Var])
		switch {
		case ok:
		case p.IsArray() && len(words) > 0:
			values = words
			words = nil
		case len(words) > 0:
			values = words[:1]
			words = words[1:]
		}
		switch {
		case len(values) == 0:
			if b.addAbsent(p); !p.IsArray() && (p.Default.Given || i < last || env.vars[p.Env] != "") {
				b.addInstruction("positional", p.Var)
			}
			continue
		case p.IsArray():
			b.addInstruction("list", p.Var, values...)
			b.addInstruction("positionals", p.Var, values...)
		default:
			b.addInstruction("set", p.Var, values[0])
			b.addInstruction("positional", p.Var)
		}
		b.checkValues(p, values)
		b.line = append(b.line, values...)
	}
	if len(words) > 0 {
		b.refuseCall("error: unexpected argument `%s` found", words[0])
	}
}

// givenArguments returns the arguments by the variables of their options. A key may be spelt
// with dashes or underscores; one that belongs to no option is refused.
func (r *scriptCall) givenArguments(b *bashCall) map[string]json.RawMessage {
	given := map[string]json.RawMessage{}
	keys := make([]string, 0, len(r.data))
	for key := range r.data {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		o := findOption(r.Command, key)
		if o == nil {
			b.refuseCall("error: unexpected argument `--%s` found\n  [arguments: %s]", strings.ReplaceAll(key, "_", "-"), strings.Join(optionKeys(r.Command), ", "))
			continue
		}
		given[o.Var] = r.data[key]
	}
	return given
}

// checkOptions returns what is wrong with the arguments of a call of a bash function beyond what bashCall knows, "" if
// nothing is: required ones that are missing, in the words of run.sh, and lists and objects for one text. A call that
// no one is asked about may bring these; a person would be shown something else than what the function gets. An
// argument that an environment variable may replace is not missing.
func (r *scriptCall) checkOptions() string {
	missing := ""
	given := r.givenArguments(&bashCall{})
	for _, o := range slices.Concat(r.Command.Options, r.Command.Positional) {
		raw, ok := given[o.Var]
		raw = bytes.TrimSpace(raw)
		switch {
		case !ok && o.Required && o.Env == "":
			missing += "\n  " + o.Label()
		case ok && !o.IsArray() && (raw[0] == '[' || raw[0] == '{'):
			return fmt.Sprintf("error: invalid value `%s` for `%s`: it must be one value, not a list or an object", raw, o.Label())
		}
	}
	if missing == "" {
		return ""
	}
	return "error: the following required arguments were not provided:" + missing
}

// twin are names that models take for each other.
var twin = map[string]string{"content": "contents", "contents": "content"}

// findOption finds what a function takes by its key, nil if there is nothing.
func findOption(c *declare.Command, key string) *declare.Option {
	key = strings.ReplaceAll(key, "-", "_")
	for _, list := range [][]declare.Option{c.Options, c.Positional} {
		if i := slices.IndexFunc(list, func(o declare.Option) bool { return o.Key == key }); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

// optionKeys returns the names of what a function takes.
func optionKeys(c *declare.Command) (keys []string) {
	for _, o := range slices.Concat(c.Options, c.Positional) {
		keys = append(keys, o.Key)
	}
	return keys
}

// addAbsent says what happens for an option that was not given.
func (b *bashCall) addAbsent(o declare.Option) {
	if o.Env != "" {
		b.addInstruction("bound", o.Var, o.Env)
	}
	switch {
	case o.Default.Fn != "":
		b.addInstruction("default-fn", o.Var, o.Default.Fn)
	case o.Default.Given:
		b.addInstruction("default", o.Var, o.Default.Text)
	case o.Required:
		b.addInstruction("required", o.Var, o.Label())
	}
}

// addOption sets what was given, and reports whether that was a value at all.
func (b *bashCall) addOption(o declare.Option, raw json.RawMessage) bool {
	if o.Flag {
		return b.addFlag(o, raw)
	}
	values, ok := b.argumentValues(o, raw)
	if !ok || len(values) == 0 {
		return ok
	}
	b.checkValues(o, values)
	for _, v := range values {
		b.line = append(b.line, o.Name, v)
	}
	if o.IsArray() {
		b.addInstruction("list", o.Var, values...)
	} else {
		b.addInstruction("set", o.Var, values[0])
	}
	return true
}

// argumentValues returns the texts of what was given. ok is false if that is no value: an empty list is none, nor is
// null, except for a required option that takes any text. Of several values for an option that takes one there are
// none, and the call is refused.
func (b *bashCall) argumentValues(o declare.Option, raw json.RawMessage) (values []string, ok bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" && (!o.AnyText() || !o.Required) {
		return nil, false
	}
	var items []json.RawMessage // not {raw}: Unmarshal would write over it
	if raw[0] != '[' {
		items = append(items, raw)
	} else {
		_ = json.Unmarshal(raw, &items) // it is valid, as a part of what was decoded
		switch {
		case len(items) == 0:
			return nil, false
		case len(items) > 1 && !o.IsArray():
			b.refuseCall("error: the argument `%s` cannot be used multiple times", o.Name)
			return nil, true
		}
	}
	return b.optionValues(o, items), true
}

// optionValues returns the texts of an option's values, split at its delimiter.
func (b *bashCall) optionValues(o declare.Option, items []json.RawMessage) []string {
	var values []string
	for _, item := range items {
		v := argumentText(item)
		if fitted, ok := o.FitNumber(v); ok {
			v = fitted
		} else {
			what := map[string]string{"integer": "a whole number", "number": "a number"}[o.Number()]
			b.refuseCall("error: invalid value `%s` for `%s`: it must be %s", v, o.Label(), what)
		}
		if o.Delimiter == "" {
			values = append(values, v)
			continue
		}
		parts := strings.Split(strings.TrimSuffix(v, o.Delimiter), o.Delimiter)
		values = append(values, parts...)
	}
	n := len(values)
	if !o.Multi && (n < o.Min || o.Max >= 0 && n > o.Max) || o.Multi && o.Max > 1 && n%o.Max != 0 {
		b.refuseCall("error: incorrect number of values for `%s`", o.Label())
	}
	return values
}

// checkValues holds the values against the option's choices.
func (b *bashCall) checkValues(o declare.Option, values []string) {
	if o.ChoiceFn != "" && !o.Unchecked {
		b.addInstruction("choice-fn", o.Notations[0], append([]string{o.ChoiceFn}, values...)...)
	}
	if len(o.Choices) == 0 {
		return
	}
	for _, v := range values {
		if !slices.Contains(o.Choices, v) {
			b.refuseCall("error: invalid value `%s` for `<%s>`\n  [possible values: %s]", v, o.Notations[0], strings.Join(o.Choices, ", "))
		}
	}
}

// addFlag sets a flag: true and false, the same as texts, and how often for one
// that may be repeated.
func (b *bashCall) addFlag(o declare.Option, raw json.RawMessage) bool {
	switch v := argumentText(raw); v {
	case "true":
		b.addInstruction("set", o.Var, "1")
	case "false", "null":
		return false
	default:
		n, err := strconv.Atoi(v)
		if !o.Multi || err != nil || n < 0 {
			b.refuseCall("error: flag `%s` don't accept any value\n  [possible values: true, false]", o.Name)
			return true
		}
		if n == 0 {
			return false
		}
		b.addInstruction("set", o.Var, v)
	}
	b.line = append(b.line, o.Name)
	return true
}

// addEnv says what is expected of an environment variable.
func (b *bashCall) addEnv(v declare.EnvVar) {
	switch {
	case v.ChoiceFn != "":
		b.addInstruction("env-choice-fn", v.Name, v.ChoiceFn)
	case len(v.Choices) > 0:
		b.addInstruction("env-choice", v.Name, strings.Join(v.Choices, "\n"))
	}
	switch {
	case v.Default.Fn != "":
		b.addInstruction("env-default-fn", v.Name, v.Default.Fn)
	case v.Default.Given:
		b.addInstruction("env-default", v.Name, v.Default.Text)
	case v.Required:
		b.addInstruction("env-required", v.Name)
	}
}

// argumentText returns a JSON value as a bash tool sees it: a text is itself, everything else
// its compact JSON.
func argumentText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil && string(bytes.TrimSpace(raw)) != "null" {
		return s
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return string(raw)
	}
	return b.String()
}
