//go:build unix

package cli_test

import (
	"strings"
	"testing"
)

// Skills of the project are used after consent, until one of their files changes; a no is remembered.
func TestConsentToSkills(t *testing.T) {
	const files = `
-- .agents/skills/cross/SKILL.md --
---
description: Of the project.
---
Read more.md.
-- .agents/skills/cross/more.md --
More.
-- dev/config.yaml --
name: dev
model: script:transcript.yaml
-- dev/transcript.yaml --
- {match: ["cross: Of the project.", go], text: RESULT=seen.}
- {match: go, text: RESULT=not seen.}
`
	const question = "The skills in .agents/skills were not named by you. This agent would follow them: cross"
	start := func(w *workplace) *screen {
		return w.screen([]string{"TERM=xterm-256color", "NO_COLOR=1"}, "run", "./dev", "go")
	}
	w := newWorkplace(t, files)
	s := start(w)
	s.await(question)
	s.answer(down, enter) // "no" comes first
	s.ends(0, "RESULT=seen.")
	s = start(w)
	s.ends(0, "RESULT=seen.")
	if strings.Contains(s.seen.String(), question) {
		t.Errorf("it asks again:\n%s", s.seen)
	}
	w.write(".agents/skills/cross/more.md", "Changed.")
	if r := w.run("run", "-q", "./dev", "go"); r.out != "RESULT=not seen.\n" {
		t.Errorf("after a change: %q\n%s", r.out, r.err)
	}
	s = start(w)
	s.await(question)
	s.answer(enter)
	s.ends(0, "RESULT=not seen.")
	s = start(w)
	s.ends(0, "RESULT=not seen.")
	if strings.Contains(s.seen.String(), question) {
		t.Errorf("it asks again after a no:\n%s", s.seen)
	}
}
