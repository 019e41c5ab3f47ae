package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/app"
	"raddle.dev/internal/failure"
	"raddle.dev/internal/strictyaml"
	"raddle.dev/internal/term"
)

// printError writes an error to standard error: what and where, why, and the next step.
func (env *environment) printError(err error) {
	var b strings.Builder
	b.WriteString(env.err.Paint(term.Red, "raddle: "))
	if list := findingsOf(err); len(list) > 0 {
		b.WriteString(faultsHeading(err) + "\n")
		for _, f := range list {
			b.WriteString("  " + env.formatFinding(f, env.err.Colors) + "\n")
		}
	} else {
		b.WriteString(formatCauses(err))
	}
	for _, also := range alsoFailed(err) {
		fmt.Fprintf(&b, "also failed: %s\n", also)
	}
	if next := env.nextStep(err); next != "" {
		fmt.Fprintf(&b, "next: %s\n", next)
	}
	_, _ = env.err.Write([]byte(b.String()))
}

// nextStep returns what to do about an error, or "".
func (env *environment) nextStep(err error) string {
	var (
		own   *exitError
		ours  *failure.Error
		model *flow.MissingModelError
		needs *flow.VariablesError
	)
	switch {
	case errors.As(err, &own) && own.next != "":
		return own.next
	case errors.As(err, &ours):
		return ours.Next
	case errors.As(err, &model):
		return env.openWithFaults().Models.ExplainMissingModel()
	case errors.As(err, &needs):
		return "set them: --agent-variable NAME VALUE"
	}
	return ""
}

// findingsOf returns the findings with positions that an error contains.
func findingsOf(err error) []strictyaml.Finding {
	var (
		load    *flow.LoadError
		refused *spec.ValidationError
		strict  *app.StrictError
	)
	switch {
	case errors.As(err, &load):
		return load.Findings
	case errors.As(err, &refused):
		return refused.Findings
	case errors.As(err, &strict):
		return strict.Findings
	}
	return nil
}

// faultsHeading returns the first line above the findings of a file.
func faultsHeading(err error) string {
	parts := splitErrorChain(err)
	var load *flow.LoadError
	if errors.As(err, &load) {
		return fmt.Sprintf("agent '%s' cannot be loaded:", load.Agent)
	}
	return parts[0] + ":"
}

// formatCauses returns an error in lines: the outermost words first, then its
// causes.
func formatCauses(err error) string {
	parts := splitErrorChain(err)
	var b strings.Builder
	b.WriteString(parts[0] + "\n")
	if len(parts) == 1 {
		return b.String()
	}
	b.WriteString("Caused by:\n")
	for i, p := range parts[1:] {
		p = strings.ReplaceAll(strings.TrimRight(p, "\n"), "\n", "\n       ")
		fmt.Fprintf(&b, "    %d: %s\n", i, p)
	}
	return b.String()
}

// graphFailed matches the beginning of the failure of an agent; its cause follows without
// an error of its own.
var graphFailed = regexp.MustCompile(`(?s)^(Graph execution failed for agent '[^']*'): (.*)$`)

// splitErrorChain splits the text of an error into the texts of the errors that it wraps.
func splitErrorChain(err error) []string {
	var parts []string
	for _, p := range splitWrapped(err.Error(), err) {
		if m := graphFailed.FindStringSubmatch(p); m != nil {
			parts = append(parts, m[1], m[2])
		} else {
			parts = append(parts, p)
		}
	}
	return parts
}

// splitWrapped splits text, the text of err or of an error around it, where an error
// inside err begins.
func splitWrapped(text string, err error) []string {
	for _, inner := range innerErrors(err) {
		rest := inner.Error()
		if head, ok := strings.CutSuffix(text, ": "+rest); ok && rest != "" {
			return append([]string{head}, splitWrapped(rest, inner)...)
		}
		if parts := splitWrapped(text, inner); len(parts) > 1 {
			return parts
		}
	}
	return []string{text}
}

func innerErrors(err error) []error {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return []error{inner}
		}
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	}
	return nil
}

// alsoFailed reports the other branches that failed in the same step.
func alsoFailed(err error) []string {
	var step *graph.StepError
	if !errors.As(err, &step) || step.Path != "" {
		return nil
	}
	var list []string
	for _, t := range step.Tasks[1:] {
		list = append(list, fmt.Sprintf("at node '%s': %v", t.Node, t.Err))
	}
	return list
}

// formatFinding returns a finding on one line, with its place as the user would write it.
func (env *environment) formatFinding(f strictyaml.Finding, colors term.Colors) string {
	f.Pos.File = env.openWithFaults().Dirs.ShortPath(f.Pos.File)
	color := term.Yellow
	switch f.Severity {
	case strictyaml.SeverityError:
		color = term.Red
	case strictyaml.SeverityInfo:
		color = term.Cyan
	}
	text := f.Text()
	if f.Hint != "" {
		text += " (" + f.Hint + ")"
	}
	return colors.Paint(term.Bold, term.OneLine(f.Pos.String())+":") + " " + colors.Paint(color, string(f.Severity)+":") + " " + term.OneLine(text)
}
