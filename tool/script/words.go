package script

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/internal/base/proc"
	"raddle.dev/internal/base/tempdir"
	"raddle.dev/tool/declare"
)

// A UsageError says that the words of a command line call no function, or name an
// argument that the function does not have.
type UsageError struct {
	Text string
	Help string // how the file is called
}

func (e *UsageError) Error() string { return e.Text }

// largestResult is how many bytes of a result RunWords writes.
const largestResult = 16 << 20

// RunWords runs a function of a file of tools as a command. The words are those of a command line: the name of the
// function where the file has several, options as --name value or --name=value, and for bash what @arg takes; or one
// JSON object. The function gets what it gets in a call of a model. own reports whether the file is the agent's own.
//
// What the function prints goes to stdout and stderr, and its result to stdout when it has ended. code
// is its exit code. With --help, RunWords writes how the file is called. Words that call nothing are a
// [*UsageError].
func (h *Host) RunWords(ctx context.Context, file string, own bool, words []string, stdout, stderr io.Writer) (code int, err error) {
	f := declare.Load(file)
	help := formatHelp(f)
	d, words, asksHelp := selectFunction(f, words)
	if asksHelp {
		_, err := io.WriteString(stdout, help)
		return 0, err
	}
	if d == nil {
		text := "the name of the function is missing"
		if len(words) > 0 {
			text = fmt.Sprintf("%s has no function %q", filepath.Base(file), words[0])
		}
		return 0, &UsageError{text, help}
	}
	dir, remove, err := tempdir.New("tool-*")
	if err != nil {
		return 0, fmt.Errorf("run %s: %w", d.Name, err)
	}
	defer remove()
	in := *h
	in.Limit = largestResult
	in.Started = nil
	in.Printed = func(_ context.Context, line string) { _, _ = io.WriteString(stdout, line+"\n") }
	r := &scriptCall{script: &script{host: &in, file: absolutePath(file), language: f.Language, own: own, Declaration: *d}, dir: dir}
	if r.data, r.positional, err = parseWords(d, words); err != nil {
		return 0, &UsageError{err.Error(), help}
	}
	if wrong := r.fitArguments(); wrong != "" {
		return 0, &UsageError{strings.TrimPrefix(wrong, "error: "), help}
	}
	if r.call.Args, err = json.Marshal(r.data); err != nil {
		return 0, fmt.Errorf("run %s: %w", d.Name, err)
	}
	cmd, wrong, err := r.buildCommand()
	switch {
	case err != nil:
		return 0, fmt.Errorf("run %s: %w", d.Name, err)
	case wrong != "":
		return 0, &UsageError{strings.TrimPrefix(wrong, "error: "), help}
	}
	res, err := r.runProcess(ctx, cmd)
	writeLines(stderr, cleanText(res.Stderr))
	writeLines(stdout, readOutput(r.callPath("output"), largestResult))
	if exit, ok := errors.AsType[*proc.ExitError](err); ok && exit.Signal == "" {
		return exit.Code, nil
	}
	return 0, err
}

// writeLines writes a text with a line break at its end. The writers belong to a terminal: what they cannot write
// is lost.
func writeLines(w io.Writer, text string) {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, _ = io.WriteString(w, text)
}

// selectFunction finds the function that the words call, and returns the words after its name. The only
// function of a file that is one tool needs no name.
func selectFunction(f declare.File, words []string) (d *declare.Declaration, rest []string, asksHelp bool) {
	if slices.ContainsFunc(words[:min(1, len(words))], func(w string) bool { return w == "--help" || w == "-h" }) {
		return nil, nil, true
	}
	if len(f.Declarations) == 1 && !f.Declarations[0].Agent && f.Language == declare.LanguageBash {
		return &f.Declarations[0], words, false
	}
	if len(words) == 0 {
		return nil, nil, false
	}
	for i, c := range f.Declarations {
		if words[0] == c.Function || strings.ReplaceAll(words[0], "-", "_") == c.Name {
			return &f.Declarations[i], words[1:], len(words) > 1 && (words[1] == "--help" || words[1] == "-h")
		}
	}
	return nil, words, false
}

// formatHelp lists the functions of a file with their arguments.
func formatHelp(f declare.File) string {
	var b strings.Builder
	for _, d := range f.Declarations {
		line := filepath.Base(f.Path)
		if d.Agent || f.Language != declare.LanguageBash {
			line += " " + d.Function
		}
		for _, arg := range listArguments(d) {
			line += " " + arg
		}
		first, _, _ := strings.Cut(strings.TrimSpace(d.Description), "\n")
		b.WriteString(line + "\n    " + first + "\n")
	}
	return b.String()
}

// listArguments returns the arguments of a function as its help shows them.
func listArguments(d declare.Declaration) (list []string) {
	add := func(label string, required bool) {
		if !required {
			label = "[" + label + "]"
		}
		list = append(list, label)
	}
	if d.Command == nil {
		for _, p := range listProperties(d.Schema) {
			label := "--" + strings.ReplaceAll(p.name, "_", "-")
			if p.kind != "boolean" {
				label += " <" + cmp.Or(p.kind, "value") + ">"
			}
			add(label, p.required)
		}
		return list
	}
	for _, o := range d.Command.Options {
		add(o.Label(), o.Required)
	}
	for _, p := range d.Command.Positional {
		add(strings.ToUpper(p.Key), p.Required)
	}
	return list
}

// A property is one argument as the schema of a function declares it.
type property struct {
	name, kind string
	required   bool
}

// listProperties returns the arguments of a schema that a declaration made, sorted by name, required ones first.
func listProperties(schema json.RawMessage) (list []property) {
	var s struct {
		Properties map[string]struct{ Type string }
		Required   []string
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	for name, p := range s.Properties {
		list = append(list, property{name, p.Type, slices.Contains(s.Required, name)})
	}
	slices.SortFunc(list, func(a, b property) int {
		if a.required != b.required {
			return map[bool]int{true: -1, false: 1}[a.required]
		}
		return strings.Compare(a.name, b.name)
	})
	return list
}

// parseWords returns the arguments that the words of a command line give a function, by their names, and the
// words that belong to no option.
func parseWords(d *declare.Declaration, words []string) (data map[string]json.RawMessage, positional []string, err error) {
	given := map[string][]string{}
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		if word == "--" {
			positional = append(positional, words...)
			break
		}
		if len(word) < 2 || word[0] != '-' || isNumber(word) {
			positional = append(positional, word)
			continue
		}
		name, value, inline := strings.Cut(word, "=")
		a := findArgument(d, name)
		switch {
		case a == nil:
			return nil, nil, fmt.Errorf("%s has no argument `%s`", d.Name, name)
		case inline:
			given[a.key] = append(given[a.key], value)
		case a.flag:
			given[a.key] = append(given[a.key], "true")
		case len(words) == 0:
			return nil, nil, fmt.Errorf("the argument `%s` has no value", name)
		default:
			n := 1
			for n < len(words) && (a.most < 0 || n < a.most) && !strings.HasPrefix(words[n], "-") {
				n++
			}
			given[a.key] = append(given[a.key], words[:n]...)
			words = words[n:]
		}
	}
	takesWords := d.Command != nil && len(d.Command.Positional) > 0
	if len(positional) == 1 && len(given) == 0 && !takesWords && json.Unmarshal([]byte(positional[0]), &data) == nil && data != nil {
		return data, nil, nil // the arguments as JSON
	}
	if !takesWords && len(positional) > 0 {
		return nil, nil, fmt.Errorf("%s takes no argument `%s` without a name", d.Name, positional[0])
	}
	data = map[string]json.RawMessage{}
	kinds := map[string]string{}
	for _, p := range listProperties(d.Schema) {
		kinds[p.name] = p.kind
	}
	for key, values := range given {
		if data[key], err = encodeValues(findArgument(d, "--"+key), kinds[key], values); err != nil {
			return nil, nil, fmt.Errorf("the argument `--%s`: %w", key, err)
		}
	}
	return data, positional, nil
}

// isNumber reports whether a word is a number, such as -3, and no option.
func isNumber(word string) bool {
	_, err := strconv.ParseFloat(word, 64)
	return err == nil
}

// An argument is what the words of a command line may name.
type argument struct {
	key  string // in the call
	flag bool   // it has no value
	bash bool   // its value is a text, whatever its type
	list bool
	most int // values of one occurrence; below zero: no limit
}

// findArgument finds an argument by the word that names it, with its dashes; nil: there is none.
func findArgument(d *declare.Declaration, word string) *argument {
	key := strings.ReplaceAll(strings.TrimLeft(word, "-"), "-", "_")
	if d.Command != nil {
		for _, o := range d.Command.Options {
			if word == o.Name || word == o.Short || strings.HasPrefix(word, "--") && key == o.Key {
				return &argument{key: o.Key, flag: o.Flag, bash: true, list: o.IsArray(), most: o.Max}
			}
		}
		return nil
	}
	for _, p := range listProperties(d.Schema) {
		if strings.HasPrefix(word, "--") && (p.name == key || p.name == word[2:]) {
			return &argument{key: p.name, flag: p.kind == "boolean", list: p.kind == "array", most: 1}
		}
	}
	return nil
}

// encodeValues returns the values of an argument as a model would give them.
func encodeValues(a *argument, kind string, values []string) (json.RawMessage, error) {
	switch {
	case a.flag && len(values) > 1:
		return json.Marshal(len(values))
	case a.list && a.bash:
		return json.Marshal(values)
	case len(values) > 1 && !a.list:
		return nil, errors.New("it cannot be used multiple times")
	case a.bash || kind == "string":
		return json.Marshal(values[0])
	case json.Valid([]byte(values[0])) && len(values) == 1 && (!a.list || strings.HasPrefix(values[0], "[")):
		return json.RawMessage(values[0]), nil
	case !a.list && kind == "": // it may be a text
		return json.Marshal(values[0])
	case !a.list:
		return nil, fmt.Errorf("%q is not of type %s", values[0], kind)
	}
	list := make([]json.RawMessage, len(values))
	for i, v := range values {
		if list[i] = json.RawMessage(v); !json.Valid(list[i]) {
			list[i], _ = json.Marshal(v) // a string can always be encoded
		}
	}
	return json.Marshal(list)
}
