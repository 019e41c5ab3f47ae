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

// add appends one instruction.
func (b *bashCall) add(word, name string, values ...string) {
	for _, w := range append([]string{word, name, strconv.Itoa(len(values))}, values...) {
		if strings.Contains(w, "\x00") {
			b.refuse("error: an argument holds a NUL character, which a bash tool cannot take")
		}
		b.words.WriteString(w)
		b.words.WriteByte(0)
	}
}

func (b *bashCall) refuse(format string, args ...any) {
	if b.wrong == "" {
		b.wrong = fmt.Sprintf(format, args...)
	}
}

// bashCall are the instructions for run.sh, or what is wrong with the arguments.
func (r *running) bashCall(env *environment) (instructions []byte, wrong string) {
	b := &bashCall{line: []string{strings.TrimSuffix(filepath.Base(r.file), filepath.Ext(r.file))}}
	if r.Agent {
		b.line = append(b.line, r.Function)
	}
	given := r.given(b)
	for _, o := range r.Command.Options {
		raw, ok := given[o.Var]
		if !ok || !b.option(o, raw) {
			b.absent(o)
		}
	}
	for _, p := range r.Command.Positional {
		if b.absent(p); p.Default.Given {
			b.add("positional", p.Var)
		}
	}
	for _, v := range r.Command.Env {
		b.env(v)
	}
	for _, name := range r.Command.Requires {
		b.add("tool", name)
	}
	b.add("arguments", "argc__args", b.line...)
	b.add("function", r.Function)
	return b.words.Bytes(), b.wrong
}

// given are the arguments by the variables of their options. A key may be spelt
// with dashes or underscores; one that belongs to no option is refused.
func (r *running) given(b *bashCall) map[string]json.RawMessage {
	given := map[string]json.RawMessage{}
	keys := make([]string, 0, len(r.data))
	for key := range r.data {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		o := option(r.Command.Options, key)
		if o == nil {
			b.refuse("error: unexpected argument `--%s` found", strings.ReplaceAll(key, "_", "-"))
			continue
		}
		given[o.Var] = r.data[key]
	}
	return given
}

// twin are names that models take for each other.
var twin = map[string]string{"content": "contents", "contents": "content"}

// option finds an option by its key.
func option(options []declare.Option, key string) *declare.Option {
	key = strings.ReplaceAll(key, "-", "_")
	i := slices.IndexFunc(options, func(o declare.Option) bool { return o.Key == key })
	if i < 0 {
		return nil
	}
	return &options[i]
}

// absent says what happens for an option that was not given.
func (b *bashCall) absent(o declare.Option) {
	if o.Env != "" {
		b.add("bound", o.Var, o.Env)
	}
	switch {
	case o.Default.Fn != "":
		b.add("default-fn", o.Var, o.Default.Fn)
	case o.Default.Given:
		b.add("default", o.Var, o.Default.Text)
	case o.Required:
		b.add("required", o.Var, o.Label())
	}
}

// option sets what was given, and tells whether that was a value at all: an
// empty list is none, nor is null, except for a required option that takes any text.
func (b *bashCall) option(o declare.Option, raw json.RawMessage) bool {
	if o.Flag {
		return b.flag(o, raw)
	}
	raw = bytes.TrimSpace(raw)
	if string(raw) == "null" && (!o.AnyText() || !o.Required) {
		return false
	}
	var items []json.RawMessage
	if raw[0] == '[' && (o.Array() || json.Unmarshal(raw, &items) == nil && len(items) < 2) {
		_ = json.Unmarshal(raw, &items) // it is valid, as a part of what was decoded
		if len(items) == 0 {
			return false
		}
	} else if raw[0] == '[' {
		b.refuse("error: the argument `%s` cannot be used multiple times", o.Name)
		return true
	} else {
		items = []json.RawMessage{raw}
	}
	values := b.values(o, items)
	b.choose(o, values)
	for _, v := range values {
		b.line = append(b.line, o.Name, v)
	}
	if o.Array() {
		b.add("list", o.Var, values...)
	} else {
		b.add("set", o.Var, values[0])
	}
	return true
}

// values are the texts of an option's values, split at its delimiter.
func (b *bashCall) values(o declare.Option, items []json.RawMessage) []string {
	var values []string
	for _, item := range items {
		v := text(item)
		if o.Delimiter == "" {
			values = append(values, v)
			continue
		}
		parts := strings.Split(strings.TrimSuffix(v, o.Delimiter), o.Delimiter)
		values = append(values, parts...)
	}
	n := len(values)
	if !o.Multi && (n < o.Min || o.Max >= 0 && n > o.Max) || o.Multi && o.Max > 1 && n%o.Max != 0 {
		b.refuse("error: incorrect number of values for `%s`", o.Label())
	}
	return values
}

// choose holds the values against the option's choices.
func (b *bashCall) choose(o declare.Option, values []string) {
	if o.ChoiceFn != "" && !o.Unchecked {
		b.add("choice-fn", o.Notations[0], append([]string{o.ChoiceFn}, values...)...)
	}
	if len(o.Choices) == 0 {
		return
	}
	for _, v := range values {
		if !slices.Contains(o.Choices, v) {
			b.refuse("error: invalid value `%s` for `<%s>`\n  [possible values: %s]", v, o.Notations[0], strings.Join(o.Choices, ", "))
		}
	}
}

// flag sets a flag: true and false, the same as texts, and how often for one
// that may be repeated.
func (b *bashCall) flag(o declare.Option, raw json.RawMessage) bool {
	switch v := text(raw); v {
	case "true":
		b.add("set", o.Var, "1")
	case "false", "null":
		return false
	default:
		n, err := strconv.Atoi(v)
		if !o.Multi || err != nil || n < 0 {
			b.refuse("error: flag `%s` don't accept any value", o.Name)
			return true
		}
		if n == 0 {
			return false
		}
		b.add("set", o.Var, v)
	}
	b.line = append(b.line, o.Name)
	return true
}

// env says what is expected of an environment variable.
func (b *bashCall) env(v declare.EnvVar) {
	switch {
	case v.ChoiceFn != "":
		b.add("env-choice-fn", v.Name, v.ChoiceFn)
	case len(v.Choices) > 0:
		b.add("env-choice", v.Name, strings.Join(v.Choices, "\n"))
	}
	switch {
	case v.Default.Fn != "":
		b.add("env-default-fn", v.Name, v.Default.Fn)
	case v.Default.Given:
		b.add("env-default", v.Name, v.Default.Text)
	case v.Required:
		b.add("env-required", v.Name)
	}
}

// text is a JSON value as a bash tool sees it: a text is itself, everything else
// its compact JSON.
func text(raw json.RawMessage) string {
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
