package experiment

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/wording"
)

// A Variant is the agent with some things replaced. The zero value but its name is the agent as it is.
type Variant struct {
	Name      string            // unique in an experiment
	Agent     string            // name or path of another agent; "": that of the experiment
	Model     string            // replaces every model; "": none
	Templates map[string]string // replace templates of prompts, by node
	Variables map[string]string // of the agent; those of an item win
}

// Baseline is the name of the variant that all others are compared with: the agent as it is.
const Baseline = "as it is"

// The things that a variant can replace, as they are written.
const (
	changeModel    = "model"
	changePrompt   = "prompt:"
	changeVariable = "variable:"
	changeAgent    = "agent"
)

// changeJoin joins the changes of one variant.
const changeJoin = " + "

// maxName is the number of characters of the name of a variant.
const maxName = 40

// ReadVariants returns the variants of an experiment: the agent as it is, and one for each word, such as model=a,b (two of
// them), prompt:NODE=TEXT, prompt:NODE=@FILE, variable:NAME=VALUE and agent=DIR. Several changes of one variant are joined
// with " + ". Relative files are relative to dir.
func ReadVariants(words []string, dir string) ([]Variant, error) {
	all := []Variant{{Name: Baseline}}
	for _, word := range words {
		made := []Variant{{}}
		for change := range strings.SplitSeq(word, changeJoin) {
			next, err := applyChange(made, strings.TrimSpace(change), dir)
			if err != nil {
				return nil, err
			}
			made = next
		}
		all = append(all, made...)
	}
	seen := map[string]bool{}
	for _, v := range all {
		if seen[v.Name] {
			return nil, failure.NewUsage("leave one of them out", "--variant: %s is there twice", v.Name)
		}
		seen[v.Name] = true
	}
	return all, nil
}

// applyChange returns variants with one more change: for each value of a list of models, one of each.
func applyChange(made []Variant, change, dir string) (all []Variant, err error) {
	what, value, ok := strings.Cut(change, "=")
	if !ok || value == "" {
		return nil, failure.NewUsage("write model=CLIENT:MODEL, prompt:NODE=@FILE, variable:NAME=VALUE or agent=DIR", "--variant: %q replaces nothing", change)
	}
	values := []string{value}
	if what == changeModel {
		values = flow.SplitModels(value)
	}
	for _, value := range values {
		for _, v := range made {
			v.Templates = maps.Clone(v.Templates)
			v.Variables = maps.Clone(v.Variables)
			if err := v.replace(what, value, dir); err != nil {
				return nil, err
			}
			name := what + "=" + wording.CutText(strings.Join(strings.Fields(value), " "), maxName, "…")
			if v.Name != "" {
				name = v.Name + changeJoin + name
			}
			v.Name = name
			all = append(all, v)
		}
	}
	return all, nil
}

// replace makes one change.
func (v *Variant) replace(what, value, dir string) error {
	node, isPrompt := strings.CutPrefix(what, changePrompt)
	name, isVariable := strings.CutPrefix(what, changeVariable)
	switch {
	case what == changeModel:
		v.Model = value
	case what == changeAgent:
		v.Agent = value
	case isPrompt && node != "":
		text, err := readValue(value, dir)
		if err != nil {
			return err
		}
		v.Templates = addTo(v.Templates, node, text)
	case isVariable && name != "":
		text, err := readValue(value, dir)
		if err != nil {
			return err
		}
		v.Variables = addTo(v.Variables, name, text)
	default:
		next := wording.SuggestNearest(what, []string{changeModel, changePrompt + "NODE", changeVariable + "NAME", changeAgent}, "")
		if next == "" {
			next = "write model=, prompt:NODE=, variable:NAME= or agent="
		}
		return failure.NewUsage(next, "--variant: nothing is called %q", what)
	}
	return nil
}

func addTo(values map[string]string, key, value string) map[string]string {
	if values == nil {
		values = map[string]string{}
	}
	values[key] = value
	return values
}

// maxValue is the size in bytes above which the file of a prompt is not read.
const maxValue = 1 << 20

// readValue returns a text, or that of the file that it names after a @.
func readValue(value, dir string) (string, error) {
	file, ok := strings.CutPrefix(value, "@")
	if !ok {
		return value, nil
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	text, err := plainfile.Read(file, maxValue)
	if err != nil {
		return "", failure.NewUsage("name a file of text after the @", "--variant: %v", err)
	}
	return string(text), nil
}

// listChanges returns everything that a variant replaces, for the ids of its cells.
func (v *Variant) listChanges() (parts []string) {
	for _, key := range slices.Sorted(maps.Keys(v.Templates)) {
		parts = append(parts, changePrompt+key, v.Templates[key])
	}
	for _, key := range slices.Sorted(maps.Keys(v.Variables)) {
		parts = append(parts, changeVariable+key, v.Variables[key])
	}
	return parts
}
