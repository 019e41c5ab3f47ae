package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/skill"
	"raddle.dev/internal/strictyaml"
	"raddle.dev/internal/wording"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// loadSkills reads the skills that the agent can use: those in its own directory, unless that is not trusted, and those of the host. The
// first of a name counts.
func loadSkills(a *Agent) {
	if a.host.Skills.Off {
		return
	}
	dirs := a.host.Skills.Dirs
	if a.host.trustsDir(a.Dir) {
		dirs = slices.Concat([]string{filepath.Join(a.Dir, "skills")}, dirs)
	}
	for _, dir := range dirs {
		found, problems := skill.ReadSkills(skillRoot(a, dir), dir)
		for _, s := range found {
			visible := a.host.Skills.Visible == nil || slices.Contains(a.host.Skills.Visible, s.Name)
			if visible && !slices.ContainsFunc(a.skills, func(have skill.Skill) bool { return have.Name == s.Name }) {
				a.skills = append(a.skills, s)
			}
		}
		for _, err := range problems {
			a.skillProblems = append(a.skillProblems, err.Error())
		}
	}
	slices.SortFunc(a.skills, func(x, y skill.Skill) int { return strings.Compare(x.Name, y.Name) })
}

// skillRoot returns the directory that the skills of a directory may not be outside of: the agent's, or the workspace. Skills in other
// directories are the user's own, and may be links to anywhere: then it is "".
func skillRoot(a *Agent, dir string) string {
	for _, root := range []string{a.Dir, a.host.Workspace} {
		if rel, err := filepath.Rel(root, dir); root != "" && err == nil && filepath.IsLocal(rel) {
			return root
		}
	}
	return ""
}

// selectSkills returns the skills that the fields of an agent or node enable. Without enabled_skills, these are all skills if the agent is
// that of a config.yaml, or if skills_enabled is true.
func selectSkills(a *Agent, s spec.Skills) (list []skill.Skill) {
	on := s.Enabled != nil && *s.Enabled
	if s.Enabled != nil && !on || s.Names == nil && !on && a.Config == nil {
		return nil
	}
	for _, each := range a.skills {
		if s.Names == nil || slices.Contains(s.Names, each.Name) {
			list = append(list, each)
		}
	}
	return list
}

// ListSkills returns the skills that an agent itself, or at least one of its nodes, can load.
func ListSkills(a *Agent) (list []skill.Skill) {
	if a.Config != nil {
		return selectSkills(a, a.Config.Skills)
	}
	for _, n := range a.File.Nodes {
		for _, s := range nodeSkills(a, n) {
			if !slices.Contains(list, s) {
				list = append(list, s)
			}
		}
	}
	return list
}

// UsesSkills reports whether an agent would use skills if there were any.
func UsesSkills(a *Agent) bool {
	if a.host.Skills.Off {
		return false
	}
	uses := func(s spec.Skills) bool {
		return (s.Enabled == nil || *s.Enabled) && (s.Names == nil || len(s.Names) > 0)
	}
	if a.Config != nil {
		return uses(a.Config.Skills)
	}
	return slices.ContainsFunc(a.File.Nodes, func(n *spec.Node) bool {
		s, ok := nodeSkillFields(a.File, n)
		return ok && uses(s) && (s.Names != nil || s.Enabled != nil)
	})
}

// nodeSkillFields returns the fields that count for an llm node: its own, or those of the graph.
func nodeSkillFields(f *spec.File, n *spec.Node) (s spec.Skills, ok bool) {
	if n.Skills == nil {
		return s, false
	}
	s, all := *n.Skills, f.Skills
	if all.Enabled != nil && !*all.Enabled || s.Enabled == nil {
		s.Enabled = all.Enabled
	}
	if s.Names == nil {
		s.Names = all.Names
	}
	if s.Inject == nil {
		s.Inject = all.Inject
	}
	s.Instructions = cmp.Or(s.Instructions, all.Instructions)
	return s, true
}

// nodeSkills returns the skills of an llm node.
func nodeSkills(a *Agent, n *spec.Node) []skill.Skill {
	if s, ok := nodeSkillFields(a.File, n); ok {
		return selectSkills(a, s)
	}
	return nil
}

// nodeSkillText returns what the model of a node reads about its skills.
func nodeSkillText(a *Agent, n *spec.Node) string {
	s, _ := nodeSkillFields(a.File, n)
	return describeSkills(s, nodeSkills(a, n))
}

// skillFindings reports the names of skills that a config.yaml enables and that do not exist, and skills that cannot be read.
func skillFindings(a *Agent) (found []strictyaml.Finding) {
	add := func(pos strictyaml.Pos, message, hint string) {
		found = append(found, strictyaml.Finding{Severity: strictyaml.SeverityWarning, Class: strictyaml.ClassAdvice, Code: "skill", Message: message, Hint: hint, Pos: pos})
	}
	if c := a.Config; c != nil && !a.host.Skills.Off {
		installed := slices.Concat(a.host.Skills.Installed, check.InstalledSkills(a.Dir))
		place := c.Source.ItemPositions("enabled_skills")
		for i, name := range c.Skills.Names {
			switch {
			case !slices.Contains(installed, name):
				add(place(i), fmt.Sprintf("the skill '%s' is not installed", name), wording.SuggestNearest(name, installed, ""))
			case a.host.Skills.Visible != nil && !slices.Contains(a.host.Skills.Visible, name):
				add(place(i), fmt.Sprintf("the skill '%s' is not in `visible_skills` of raddle's config.yaml", name), "")
			}
		}
	}
	if UsesSkills(a) {
		for _, text := range a.skillProblems {
			add(strictyaml.Pos{}, "a skill cannot be used: "+text, "")
		}
	}
	return found
}

// skillInstructions is what a model reads before the list of its skills, unless the file has a text for it.
const skillInstructions = `## Skills
A skill is a set of instructions for one kind of task. If a task fits the description of a skill, call skill__load with its name before you begin, and follow
what you read.`

// describeSkills returns what a model reads about its skills; "" if there are none, or if the file switches the text off.
func describeSkills(s spec.Skills, list []skill.Skill) string {
	if len(list) == 0 || s.Inject != nil && !*s.Inject {
		return ""
	}
	text := cmp.Or(strings.TrimSpace(s.Instructions), skillInstructions)
	var b strings.Builder
	b.WriteString(text + "\n")
	for _, each := range list {
		fmt.Fprintf(&b, "\n- %s: %s", each.Name, each.Description)
	}
	return b.String()
}

// These are the schemas of the arguments of the tools of skills.
const (
	loadSkillSchema = `{"type":"object","properties":{"name":{"type":"string","description":"The skill's name"},` +
		`"file":{"type":"string","description":"A file of the skill to read, as the skill lists it. Leave it out to read the skill itself"}},"required":["name"]}`
	listSkillsSchema = `{"type":"object","properties":{}}`
)

// skillTools returns the tools with which a model uses skills; nil if there are none.
func skillTools(list []skill.Skill) []tool.Tool {
	if len(list) == 0 {
		return nil
	}
	return []tool.Tool{
		{Name: "skill__list", Description: "List your skills, with what each is for.", Schema: json.RawMessage(listSkillsSchema), Effect: tool.ReadOnly, Parallel: true,
			Run: func(context.Context, tool.Call) (tool.Result, error) { return listSkills(list), nil }},
		{Name: "skill__load", Description: "Read the instructions of a skill, or one of its files.", Schema: json.RawMessage(loadSkillSchema), Effect: tool.ReadOnly, Parallel: true,
			Run: func(_ context.Context, c tool.Call) (tool.Result, error) { return loadSkill(list, c.Args) }},
	}
}

func listSkills(list []skill.Skill) tool.Result {
	type entry struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	var entries []entry
	for _, s := range list {
		entries = append(entries, entry{s.Name, s.Description})
	}
	return tool.JSONResult(map[string]any{"skills": entries})
}

// textResult returns a result whose text is as it is.
func textResult(text string) tool.Result {
	return tool.Result{Content: []llm.Part{llm.Text{Text: text}}}
}

// loadSkill returns the text of a skill with the names of its files, or the text of a file.
func loadSkill(list []skill.Skill, raw json.RawMessage) (tool.Result, error) {
	var args struct{ Name, File string }
	if err := json.Unmarshal(raw, &args); err != nil {
		return tool.Result{}, err
	}
	i := slices.IndexFunc(list, func(s skill.Skill) bool { return s.Name == strings.TrimSpace(args.Name) })
	if i < 0 {
		var names []string
		for _, s := range list {
			names = append(names, s.Name)
		}
		return tool.FailedResult("there is no skill %q. Your skills: %s", args.Name, strings.Join(names, ", ")), nil
	}
	s := list[i]
	if args.File != "" && args.File != skill.FileName {
		text, err := s.ReadFile(args.File)
		if err != nil {
			return tool.Result{}, err
		}
		return textResult(text), nil
	}
	body, files, err := s.ReadBody()
	if err != nil {
		return tool.Result{}, err
	}
	text := fmt.Sprintf("The skill %s. Its directory is %s; paths in it are relative to that.\n\n%s", s.Name, s.Dir, body)
	if len(files) > 0 {
		text = strings.TrimRight(text, "\n") + "\n\nIts files, which skill__load reads with `file`:\n- " + strings.Join(files, "\n- ")
	}
	return textResult(text), nil
}
