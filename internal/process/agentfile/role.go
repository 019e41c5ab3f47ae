package agentfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Role is a file that gives a model instructions, in the form of Loki, Coyote and aichat. Its text is the
// instructions, in which __INPUT__ is the place of what the user says, and ### INPUT: and ### OUTPUT: begin examples.
type Role struct {
	Name        string
	Description string   // of its head, or the beginning of its text; one line
	Fields      []Field  // of the config.yaml that it means
	Ignored     []string // fields of its head that have no effect here, sorted
}

// passedFields are the fields of a role that a config.yaml has under the same name.
var passedFields = []string{
	"model", "temperature", "top_p", "reasoning_effort", "skills_enabled", "auto_continue", "max_auto_continues",
	"inject_todo_instructions", "continuation_prompt", "inject_skill_instructions", "skill_instructions",
}

// listedFields are the lists of names of a role, with the field of a config.yaml that has them. aichat writes use_tools.
var listedFields = []struct{ role, config string }{
	{"use_tools", "global_tools"},
	{"enabled_tools", "global_tools"},
	{"enabled_mcp_servers", "mcp_servers"},
	{"enabled_skills", "enabled_skills"},
}

// ReadRole reads the file of a role.
func ReadRole(name string, text []byte) Role {
	m := ReadMarkdown(text)
	r := Role{Name: name, Description: cmp.Or(m.FindText("description"), beginText(m.Body))}
	lists := map[string][]string{}
	for _, f := range listedFields {
		if names, ok := m.ListNames(f.role); ok && lists[f.config] == nil {
			lists[f.config] = names
		}
	}
	r.Fields = []Field{{"name", name}, {"description", r.Description}}
	known := []string{"name", "description"}
	for _, key := range passedFields {
		r.Fields = append(r.Fields, Field{key, m.Head[key]})
		known = append(known, key)
	}
	for _, f := range listedFields {
		known = append(known, f.role)
		if names := lists[f.config]; names != nil {
			r.Fields = append(r.Fields, Field{f.config, names})
			delete(lists, f.config)
		}
	}
	r.Fields = append(r.Fields, Field{"instructions", m.Body})
	for key, value := range m.Head {
		if value != nil && !slices.Contains(known, key) {
			r.Ignored = append(r.Ignored, key)
		}
	}
	slices.Sort(r.Ignored)
	return r
}

// Config returns the role as a config.yaml. The error names the role.
func (r Role) Config() ([]byte, error) {
	text, err := WriteConfig(r.Fields...)
	if err != nil {
		return nil, fmt.Errorf("the role %s cannot be written as a config.yaml: %w", r.Name, err)
	}
	return text, nil
}

// longestBeginning is how many characters of a text describe it.
const longestBeginning = 80

// beginText returns the beginning of the first line of a text.
func beginText(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > longestBeginning {
		return string(runes[:longestBeginning-1]) + "…"
	}
	return line
}
