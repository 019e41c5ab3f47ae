package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/skill"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// loadSkills reads the skills that the agent can use: those in its own directory, unless that is not trusted, and those
// of the host. The first of a name counts.
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
			if visible && !hasSkill(a.skills, s.Name) {
				a.skills = append(a.skills, s)
			}
		}
		for _, err := range problems {
			a.skillProblems = append(a.skillProblems, err.Error())
		}
	}
	slices.SortFunc(a.skills, func(x, y skill.Skill) int { return strings.Compare(x.Name, y.Name) })
}

// skillRoot returns the directory that the skills of a directory may not be outside of: the agent's, or the workspace.
// Skills in other directories are the user's own, and may be links to anywhere: then it is "".
func skillRoot(a *Agent, dir string) string {
	for _, root := range []string{a.Dir, a.host.Workspace} {
		if rel, err := filepath.Rel(root, dir); root != "" && err == nil && filepath.IsLocal(rel) {
			return root
		}
	}
	return ""
}

// selectSkills returns the skills that the fields of an agent or node enable. Without enabled_skills, these are all
// skills if the agent is that of a config.yaml, or if skills_enabled is true.
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
			if !hasSkill(list, s.Name) {
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
	s = *n.Skills
	all := f.Skills
	if all.Enabled != nil && !*all.Enabled || s.Enabled == nil {
		s.Enabled = all.Enabled
	}
	if s.Names == nil {
		s.Names = all.Names
	}
	if s.Preload == nil {
		s.Preload = all.Preload
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

// skillFindings reports the names of skills that a config.yaml enables and that do not exist, and skills that cannot be
// read.
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
	for _, s := range ListSkills(a) {
		at := strictyaml.Pos{File: filepath.Join(s.Dir, skill.FileName), Line: 1, Col: 1}
		for _, p := range a.Tools.SkillProblems {
			if slices.Contains(s.Tools, p.Tool) && len(findSkillTools(a, p.Tool)) == 0 || slices.Contains(s.Servers, p.Server) {
				add(at, fmt.Sprintf("the skill '%s' brings what does not exist: %s", s.Name, p.Text), p.Hint)
			}
		}
	}
	if c := a.Config; c != nil && !a.host.Skills.Off {
		place := c.Source.ItemPositions("preload_skills")
		for i, name := range c.Skills.Preload {
			if !hasSkill(ListSkills(a), name) {
				add(place(i), fmt.Sprintf("the skill '%s' cannot be preloaded: it is not one of the agent's skills", name), wording.SuggestNearest(name, skillNames(ListSkills(a)), ""))
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

// describeSkills returns what a model reads about its skills; "" if there are none, or if the file switches the text
// off.
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
	unloadSkillSchema = `{"type":"object","properties":{"name":{"type":"string","description":"The skill's name"}},"required":["name"]}`
	listSkillsSchema  = `{"type":"object","properties":{}}`
)

// These are the names of the tools of skills.
const (
	skillListTool   = "skill__list"
	skillLoadTool   = "skill__load"
	skillUnloadTool = "skill__unload"
)

// skillTools returns the tools with which a model uses skills; nil if there are none.
func skillTools(a *Agent, list []skill.Skill) []tool.Tool {
	if len(list) == 0 {
		return nil
	}
	return []tool.Tool{
		{Name: skillListTool, Description: "List your skills, with what each is for.", Schema: json.RawMessage(listSkillsSchema), Effect: tool.ReadOnly, Parallel: true,
			Run: func(context.Context, tool.Call) (tool.Result, error) { return listSkills(a, list), nil }},
		{Name: skillLoadTool, Description: "Read the instructions of a skill, or one of its files. You can then call the tools that it brings.", Schema: json.RawMessage(loadSkillSchema), Effect: tool.ReadOnly, Parallel: true,
			Run: func(_ context.Context, c tool.Call) (tool.Result, error) { return loadSkill(a, list, c.Args) }},
		{Name: skillUnloadTool, Description: "Put a skill away when its work is done, with the tools that it brought.", Schema: json.RawMessage(unloadSkillSchema), Effect: tool.ReadOnly, Parallel: true,
			Run: func(_ context.Context, c tool.Call) (tool.Result, error) { return unloadSkill(list, c.Args) }},
	}
}

func listSkills(a *Agent, list []skill.Skill) tool.Result {
	type entry struct {
		Name        string   `json:"name"`
		Description string   `json:"description"`
		Tools       []string `json:"tools,omitempty"`
		Servers     []string `json:"mcp_servers,omitempty"`
	}
	var entries []entry
	for _, s := range list {
		kit := skillKit(a, s)
		entries = append(entries, entry{s.Name, s.Description, kit.Tools, kit.Sources})
	}
	return tool.JSONResult(map[string]any{"skills": entries})
}

// textResult returns a result whose text is as it is.
func textResult(text string) tool.Result {
	return tool.Result{Content: []llm.Part{llm.Text{Text: text}}}
}

// skillCall are the arguments of skill__load and skill__unload.
type skillCall struct{ Name, File string }

// asksForFile reports whether a call of skill__load reads a file of a skill, and not the skill itself.
func (c skillCall) asksForFile() bool { return c.File != "" && c.File != skill.FileName }

// findSkill returns the skill that a call names.
func findSkill(list []skill.Skill, raw json.RawMessage) (c skillCall, s skill.Skill, ok bool) {
	if json.Unmarshal(raw, &c) != nil {
		return c, s, false
	}
	i := slices.IndexFunc(list, func(s skill.Skill) bool { return s.Name == strings.TrimSpace(c.Name) })
	if i < 0 {
		return c, s, false
	}
	return c, list[i], true
}

// failUnknownSkill returns the result of a call that names no skill.
func failUnknownSkill(list []skill.Skill, name string) tool.Result {
	return tool.FailedResult("there is no skill %q. Your skills: %s", name, strings.Join(skillNames(list), ", "))
}

// unloadSkill returns what a model reads when it puts a skill away.
func unloadSkill(list []skill.Skill, raw json.RawMessage) (tool.Result, error) {
	c, s, ok := findSkill(list, raw)
	if !ok {
		return failUnknownSkill(list, c.Name), nil
	}
	text := "The skill " + s.Name + " is put away: its instructions do not apply any more"
	if len(s.Tools)+len(s.Servers) > 0 {
		text += ", and you cannot call the tools that only it brought"
	}
	return textResult(text + "."), nil
}

// loadSkill returns the text of a skill with the names of its files, or the text of a file.
func loadSkill(a *Agent, list []skill.Skill, raw json.RawMessage) (tool.Result, error) {
	args, s, ok := findSkill(list, raw)
	if !ok {
		return failUnknownSkill(list, args.Name), nil
	}
	if args.asksForFile() {
		text, err := s.ReadFile(args.File)
		if err != nil {
			return tool.Result{}, err
		}
		return textResult(text), nil
	}
	text, err := skillText(a, s)
	if err != nil {
		return tool.Result{}, err
	}
	return textResult(text), nil
}

// skillText returns what a model reads of a skill: its text, the names of its files, and what it brings.
func skillText(a *Agent, s skill.Skill) (string, error) {
	body, files, err := s.ReadBody()
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("The skill %s. Its directory is %s; paths in it are relative to that.\n\n%s", s.Name, s.Dir, body)
	if len(files) > 0 {
		text = strings.TrimRight(text, "\n") + "\n\nIts files, which skill__load reads with `file`:\n- " + strings.Join(files, "\n- ")
	}
	kit := skillKit(a, s)
	for _, part := range []struct {
		intro string
		names []string
	}{
		{"While you use it, you can also call these tools: ", kit.Tools}, {"While you use it, you can also call the tools of these MCP servers: ", kit.Sources},
		{"It asks for these tools and servers, which do not exist here: ", missingOfSkill(a, s)},
	} {
		if len(part.names) > 0 {
			text = strings.TrimRight(text, "\n") + "\n\n" + part.intro + strings.Join(part.names, ", ")
		}
	}
	return text, nil
}

// findSkillTools returns the tools that an entry of a skill's enabled_tools means: those of its file or built-in ones,
// or one of the agent's own.
func findSkillTools(a *Agent, name string) []tool.Tool {
	if found := a.Tools.SkillTools[name]; len(found) > 0 {
		return found
	}
	own := a.Tools.uniqueTools()
	if i := slices.IndexFunc(own, func(t tool.Tool) bool { return t.Name == name || t.Name == spec.ToolStem(name) }); i >= 0 {
		return own[i : i+1]
	}
	return nil
}

// skillKit returns the tools and servers that exist of those that a skill brings, by the names that its file uses.
func skillKit(a *Agent, s skill.Skill) (kit agent.Kit) {
	for _, name := range s.Tools {
		if len(findSkillTools(a, name)) > 0 {
			kit.Tools = append(kit.Tools, name)
		}
	}
	for _, id := range s.Servers {
		if slices.Contains(a.Tools.SkillServers, id) {
			kit.Sources = append(kit.Sources, id)
		}
	}
	return kit
}

// missingOfSkill returns the tools and servers of a skill that do not exist.
func missingOfSkill(a *Agent, s skill.Skill) (names []string) {
	kit := skillKit(a, s)
	for _, name := range s.Tools {
		if !slices.Contains(kit.Tools, name) {
			names = append(names, name)
		}
	}
	for _, id := range s.Servers {
		if !slices.Contains(kit.Sources, id) {
			names = append(names, id)
		}
	}
	return names
}

// skillKits returns what the skills of an agent or of a node bring while the model uses them.
func skillKits(a *Agent, list []skill.Skill) agent.Kits {
	if len(list) == 0 {
		return agent.Kits{}
	}
	return agent.Kits{
		Change: func(name string, args json.RawMessage) map[string]agent.Kit {
			c, s, ok := findSkill(list, args)
			switch {
			case ok && name == skillLoadTool && !c.asksForFile() && len(s.Tools)+len(s.Servers) > 0:
				return map[string]agent.Kit{s.Name: skillKit(a, s)}
			case ok && name == skillUnloadTool:
				return map[string]agent.Kit{s.Name: {}}
			}
			return nil
		},
		Tools:   func(name string) []tool.Tool { return findSkillTools(a, name) },
		Sources: func(names []string) agent.Sources { return serverSources(a, names, false) },
	}
}

// preloadSkills returns the texts of the skills with which a conversation begins, and what they bring. It reports those
// that are not there.
func preloadSkills(ctx context.Context, a *Agent, fields spec.Skills, list []skill.Skill) (texts []string, kits map[string]agent.Kit, err error) {
	kits = map[string]agent.Kit{}
	for _, name := range fields.Preload {
		i := slices.IndexFunc(list, func(s skill.Skill) bool { return s.Name == name })
		if i < 0 {
			graph.Emit(ctx, agent.Warning{Text: fmt.Sprintf("the skill '%s' is not preloaded: it is not one of the skills that %s can use here", name, a.Name)})
			continue
		}
		text, err := skillText(a, list[i])
		if err != nil {
			return nil, nil, fmt.Errorf("the skill '%s': %w", name, err)
		}
		texts = append(texts, text)
		kits[name] = skillKit(a, list[i])
	}
	return texts, kits, nil
}

func hasSkill(list []skill.Skill, name string) bool {
	return slices.ContainsFunc(list, func(s skill.Skill) bool { return s.Name == name })
}

func skillNames(list []skill.Skill) []string {
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = s.Name
	}
	return names
}

// appendNew appends the names that a list does not have yet.
func appendNew(list []string, names ...string) []string {
	for _, name := range names {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}
