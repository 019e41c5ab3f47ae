package modeltest

import (
	"strings"
)

// FormatHeading returns the heading of the table of the guide.
func FormatHeading() string {
	cells := []string{"server", "model", "date"}
	for _, step := range ListSteps() {
		cells = append(cells, step.Name)
	}
	cells = append(cells, "reasoning goes back")
	return joinCells(cells) + "\n|" + strings.Repeat("---|", len(cells))
}

// FormatRow returns one row of the table of the guide. note returns the mark of a reason why a step does not work; nil:
// there are no marks.
func FormatRow(server, model, date string, steps []Result, note func(Result) string) string {
	cells := []string{server, model, date}
	back := "?"
	for _, step := range ListSteps() {
		cell := "?"
		for _, r := range steps {
			if r.Step != step.Name {
				continue
			}
			cell = map[Status]string{Works: "yes", Fails: "no", Untested: "–"}[r.Status]
			if r.Status == Fails && note != nil {
				cell += " " + note(r)
			}
			if names, found := strings.CutPrefix(r.Detail, reasoningBack); found {
				back = "`" + strings.ReplaceAll(names, ", ", "`, `") + "`"
			} else if r.Step == "round" && r.Status == Works {
				back = "no"
			}
		}
		cells = append(cells, cell)
	}
	return joinCells(append(cells, back))
}

func joinCells(cells []string) string {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |"
}
