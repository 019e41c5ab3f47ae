package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/strictyaml"
)

// InstalledSkills returns the sorted names of the skills below a directory: the
// directories skills/NAME that contain a file SKILL.md. It returns none if a
// directory cannot be read.
func InstalledSkills(dir string) []string {
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(dir, "skills"))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(dir, "skills", e.Name(), "SKILL.md")); err == nil && info.Mode().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names
}

// areSkillsDisabled reports whether skills are disabled at this level.
func areSkillsDisabled(s spec.Skills) bool { return s.Enabled != nil && !*s.Enabled }

// checkSkills checks the names of the skills that the graph and its llm nodes
// enable, unless skills are disabled. Each name gets only the first finding
// that applies.
func (c *Checker) checkSkills() {
	if c.Context.NoSkills || areSkillsDisabled(c.File.Skills) {
		return
	}
	universe := c.File.Skills.Names
	place := c.File.Source.ItemPositions("enabled_skills")
	for i, skill := range universe {
		if message := c.skillFault("graph 'enabled_skills'", skill); message != "" {
			c.addGraphFinding(strictyaml.SeverityError, place(i), "skill", message)
		}
	}
	listed := map[string]bool{}
	for _, skill := range universe {
		listed[skill] = true
	}
	for _, n := range c.File.Nodes {
		if n.Skills == nil || areSkillsDisabled(*n.Skills) {
			continue
		}
		field := n.Kind() + " node 'enabled_skills'"
		place := n.Source.ItemPositions("enabled_skills")
		for i, skill := range n.Skills.Names {
			message := c.skillFault(field, skill)
			if message == "" && universe != nil && !listed[skill] {
				message = fmt.Sprintf("%s references '%s' which is not in graph-level 'enabled_skills' (%s)",
					field, skill, strings.Join(universe, ", "))
			}
			if message != "" && !c.IsFull() {
				c.ErrorAt(n, place(i), "skill", "%s", message)
			}
		}
	}
}

// skillFault returns what is wrong with the name of a skill, or "".
func (c *Checker) skillFault(field, skill string) string {
	switch {
	case strings.TrimSpace(skill) == "":
		return field + " contains an empty skill name"
	case !validSkill(skill):
		return fmt.Sprintf("%s contains an invalid skill name: '%s': Invalid skill name '%s': only letters, digits, '-', and '_' are allowed",
			field, skill, skill)
	case !c.Context.Loaded:
		return ""
	case !slices.Contains(c.Context.Skills, skill):
		return fmt.Sprintf("%s: '%s' is not installed", field, skill)
	case c.Context.VisibleSkills != nil && !slices.Contains(c.Context.VisibleSkills, skill):
		return fmt.Sprintf("%s: '%s' is not in the global 'visible_skills' allow-list", field, skill)
	}
	return ""
}

func validSkill(name string) bool {
	for _, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (r < '0' || r > '9') && r != '-' && r != '_' {
			return false
		}
	}
	return name != ""
}
