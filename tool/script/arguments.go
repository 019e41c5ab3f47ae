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
	b.addPositional(r.Command.Positional, r.positional)
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

// addPositional sets the values of @arg. A model gives no words, so only defaults count then.
func (b *bashCall) addPositional(list []declare.Option, words []string) {
	for _, p := range list {
		switch {
		case len(words) == 0:
			if b.addAbsent(p); p.Default.Given {
				b.addInstruction("positional", p.Var)
			}
		case p.IsArray():
			b.checkChoices(p, words)
			b.addInstruction("list", p.Var, words...)
			b.addInstruction("positionals", p.Var, words...)
			words = nil
		default:
			b.checkChoices(p, words[:1])
			b.addInstruction("set", p.Var, words[0])
			b.addInstruction("positional", p.Var)
			words = words[1:]
		}
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
		o := findOption(r.Command.Options, key)
		if o == nil {
			b.refuseCall("error: unexpected argument `--%s` found", strings.ReplaceAll(key, "_", "-"))
			continue
		}
		given[o.Var] = r.data[key]
	}
	return given
}

// twin are names that models take for each other.
var twin = map[string]string{"content": "contents", "contents": "content"}

// findOption finds an option by its key.
func findOption(options []declare.Option, key string) *declare.Option {
	key = strings.ReplaceAll(key, "-", "_")
	i := slices.IndexFunc(options, func(o declare.Option) bool { return o.Key == key })
	if i < 0 {
		return nil
	}
	return &options[i]
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

// addOption sets what was given, and reports whether that was a value at all: an
// empty list is none, nor is null, except for a required option that takes any text.
func (b *bashCall) addOption(o declare.Option, raw json.RawMessage) bool {
	if o.Flag {
		return b.addFlag(o, raw)
	}
	raw = bytes.TrimSpace(raw)
	if string(raw) == "null" && (!o.AnyText() || !o.Required) {
		return false
	}
	var items []json.RawMessage
	if raw[0] == '[' && (o.IsArray() || json.Unmarshal(raw, &items) == nil && len(items) < 2) {
		_ = json.Unmarshal(raw, &items) // it is valid, as a part of what was decoded
		if len(items) == 0 {
			return false
		}
	} else if raw[0] == '[' {
		b.refuseCall("error: the argument `%s` cannot be used multiple times", o.Name)
		return true
	} else {
		items = []json.RawMessage{raw}
	}
	values := b.optionValues(o, items)
	b.checkChoices(o, values)
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

// optionValues returns the texts of an option's values, split at its delimiter.
func (b *bashCall) optionValues(o declare.Option, items []json.RawMessage) []string {
	var values []string
	for _, item := range items {
		v := argumentText(item)
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

// checkChoices holds the values against the option's choices.
func (b *bashCall) checkChoices(o declare.Option, values []string) {
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
			b.refuseCall("error: flag `%s` don't accept any value", o.Name)
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
