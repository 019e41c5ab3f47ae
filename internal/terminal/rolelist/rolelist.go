// Package rolelist shows roles on a terminal: their list, and the agent that one of them is.
package rolelist

import (
	"strings"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/agentfile"
)

// A Row is a role in the list.
type Row struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Ignored     []string `json:"ignored,omitempty"` // fields of its head without effect
}

// ListRows returns the rows of roles.
func ListRows(roles []agentfile.Role) []Row {
	rows := make([]Row, 0, len(roles))
	for _, r := range roles {
		rows = append(rows, Row{Name: r.Name, Description: r.Description, Ignored: r.Ignored})
	}
	return rows
}

// DescribeRows returns the list as text. dir is where roles are.
func DescribeRows(rows []Row, dir string) string {
	if len(rows) == 0 {
		return "There are no roles in " + dir + ". A role is a file NAME.md with instructions for a model: raddle help agents"
	}
	return term.FormatRows(rows,
		term.NewColumn("ROLE", func(r Row) string { return r.Name }),
		term.NewColumn("WHAT IT DOES", func(r Row) string { return r.Description }),
	)
}

// A Shown is a role with the agent that it is.
type Shown struct {
	Row
	Config string `json:"config"` // the text of its config.yaml
}

// ShowRole returns a role with the agent that it is.
func ShowRole(r agentfile.Role) (Shown, error) {
	text, err := r.Config()
	return Shown{Row: ListRows([]agentfile.Role{r})[0], Config: strings.TrimSpace(string(text))}, err
}

// Text returns the agent, after a line about each field of the head that has no effect.
func (s Shown) Text() string {
	var b strings.Builder
	for _, field := range s.Ignored {
		b.WriteString("# " + field + " has no effect\n")
	}
	return b.String() + s.Config
}
