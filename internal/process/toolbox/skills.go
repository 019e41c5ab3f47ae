package toolbox

import (
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/flow/check"
	"raddle.dev/internal/base/skill"
	"raddle.dev/tool"
	"raddle.dev/tool/permission"
	"raddle.dev/tool/script"
)

// skillsDir is the name of directories of skills.
const skillsDir = "skills"

// ProjectSkillDirs returns the directories of skills in a workspace, which need not exist. The first with a skill of a
// name counts.
func ProjectSkillDirs(workspace string) []string {
	return []string{filepath.Join(workspace, ".raddle", skillsDir), filepath.Join(workspace, ".agents", skillsDir), filepath.Join(workspace, skillsDir)}
}

// SkillDirs returns the directories of skills that agents may use: those of the workspace that the user has consented
// to, and the user's own.
func (tb *Toolbox) SkillDirs() (dirs []string) {
	s := tb.shared
	for _, dir := range ProjectSkillDirs(tb.workspace) {
		if len(check.InstalledSkills(filepath.Dir(dir))) > 0 && (s.isNamedOrInstalled(dir, tb.named) || s.hasTreeConsent(dir, tb.workspace)) {
			dirs = append(dirs, dir)
		}
	}
	return append(dirs, filepath.Join(s.Dirs.Config, skillsDir))
}

// findSkillDirs returns the directories of skills that a run would use with the user's consent.
func (s *Shared) findSkillDirs(a *flow.Agent) (list []ImplicitDir) {
	uses := false
	for _, child := range a.Agents() {
		uses = uses || flow.UsesSkills(child)
	}
	for _, dir := range ProjectSkillDirs(s.Dirs.Work) {
		names := check.InstalledSkills(filepath.Dir(dir))
		if !uses || len(names) == 0 || s.isNamedOrInstalled(dir, a.Dir) {
			continue
		}
		if _, no, err := s.consentStore().LookUpConsent(dir); err != nil || no || s.hasTreeConsent(dir, s.Dirs.Work) {
			continue
		}
		digest, err := permission.DigestTree(dir, s.Dirs.Work)
		if err != nil {
			continue // what cannot be read is not used
		}
		list = append(list, ImplicitDir{
			Dir:    dir,
			Skills: true,
			Files:  describeSkills(s.Dirs.Work, dir, names),
			Digest: digest,
		})
	}
	return list
}

// describeSkills returns the names of skills with the tools and servers that they bring.
func describeSkills(workspace, dir string, names []string) (list []string) {
	found, _ := skill.ReadSkills(workspace, dir) // what cannot be read brings nothing
	for _, name := range names {
		i := slices.IndexFunc(found, func(s skill.Skill) bool { return s.Name == name })
		if i >= 0 && len(found[i].Tools)+len(found[i].Servers) > 0 {
			name += " (brings " + strings.Join(slices.Concat(found[i].Tools, found[i].Servers), " ") + ")"
		}
		list = append(list, name)
	}
	return list
}

// addSkillTools finds the tools that an agent's skills bring.
func (tb *Toolbox) addSkillTools(h *script.Host, n flow.ToolNeed, set *flow.Toolset) {
	set.SkillTools = map[string][]tool.Tool{}
	for _, name := range n.SkillTools {
		found := &flow.Toolset{}
		tb.addGlobalTool(h, n, name, found)
		set.SkillTools[name] = found.Tools
		for _, file := range found.Scripts {
			if !slices.Contains(set.Scripts, file) {
				set.Scripts = append(set.Scripts, file)
			}
		}
		set.Unused = append(set.Unused, found.Unused...)
		for _, p := range found.Problems {
			p.Tool = name
			set.SkillProblems = append(set.SkillProblems, p)
		}
	}
}
