// Package modelview shows models on a terminal: the list of those that can be called, and the test of one.
package modelview

import (
	"fmt"
	"strings"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/provider"
)

// FormatModels returns the table of models.
func FormatModels(models []provider.Model) string {
	table := term.NewTable(
		term.NewColumn("MODEL", func(m provider.Model) string { return m.ID }),
		term.NewColumn("WINDOW", formatWindow),
		term.NewColumn("USD PER MILLION IN", func(m provider.Model) string { return formatPrice(m.Input) }),
		term.NewColumn("OUT", func(m provider.Model) string { return formatPrice(m.Output) }),
	)
	var others []string // clients of which no model is known by name
	for _, m := range models {
		if strings.HasSuffix(m.ID, ":") {
			others = append(others, m.ID+"MODEL")
			continue
		}
		table.AddRow(m)
	}
	text := table.Format(0)
	if len(others) == len(models) {
		text = ""
	}
	if len(others) > 0 {
		if text != "" {
			text += "\n"
		}
		text += "Any model of the server: " + strings.Join(others, ", ") + "\n"
	}
	return text
}

// formatWindow returns the window of a model, or "?" if it is unknown.
func formatWindow(m provider.Model) string {
	if m.Window <= 0 {
		return "?"
	}
	return fmt.Sprint(m.Window)
}

// formatPrice returns a price, or "?" if it is unknown.
func formatPrice(price *float64) string {
	if price == nil {
		return "?"
	}
	return fmt.Sprint(*price)
}

// FormatMissingKeys returns the clients that only need a key, with the variables to set, and where the credentials of
// clouds are from.
func FormatMissingKeys(clients []provider.ClientInfo) string {
	var b strings.Builder
	for _, c := range clients {
		if c.Needs == "" {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("\nWithout a key (set the variable, or store a key with raddle login CLIENT):\n")
		}
		fmt.Fprintf(&b, "  %-12s %s\n", c.Client, c.Needs)
	}
	for _, c := range clients {
		if text := c.DescribeCloud(); text != "" {
			b.WriteString("\n" + term.CleanText(text) + "\n")
		}
	}
	return b.String()
}
