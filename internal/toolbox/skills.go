package toolbox

import (
	"path/filepath"

	"raddle.dev/flow"
	"raddle.dev/flow/check"
)

// skillsDir is the name of directories of skills.
const skillsDir = "skills"

// ProjectSkillDirs returns the directories of skills in a workspace, which need not exist. The first with a skill of a name counts.
func ProjectSkillDirs(workspace string) []string {
	return []string{filepath.Join(workspace, ".raddle", skillsDir), filepath.Join(workspace, ".agents", skillsDir), filepath.Join(workspace, skillsDir)}
}

// SkillDirs returns the directories of skills that agents may use: those of the workspace that the user has consented to, and the user's
// own.
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
		list = append(list, ImplicitDir{Dir: dir, Skills: true, Files: names})
	}
	return list
}
