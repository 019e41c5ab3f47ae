// Package helptext writes the help of commands.
package helptext

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"raddle.dev/docs/guide"
	"raddle.dev/internal/base/term"
)

// FormatHelp returns a command's help: what it does, how to call it, examples,
// commands and flags. Paragraphs whose lines do not fit into a terminal with that
// many columns are one line each, which it breaks; 0: it is no terminal.
func FormatHelp(cmd *cobra.Command, columns int) string {
	var b strings.Builder
	b.WriteString(cmd.Short + ".\n")
	if cmd.Long != "" {
		for paragraph := range strings.SplitSeq(strings.TrimSpace(cmd.Long), "\n\n") {
			b.WriteString("\n" + joinLines(paragraph, columns) + "\n")
		}
	}
	if cmd.HasParent() {
		b.WriteString("\nUsage:\n  " + usageLine(cmd) + "\n")
	}
	if cmd.Example != "" {
		title := "Examples"
		if !cmd.HasParent() {
			title = "Start here"
		}
		b.WriteString("\n" + title + ":\n" + cmd.Example + "\n")
	}
	if cmd.HasAvailableSubCommands() {
		listCommands(&b, cmd)
	}
	if !cmd.HasParent() {
		listGuides(&b)
	}
	listFlags(&b, "Flags", cmd.LocalNonPersistentFlags())
	global := cmd.InheritedFlags()
	if !cmd.HasParent() {
		global = cmd.PersistentFlags()
	}
	listFlags(&b, "Flags of all commands", global)
	if !cmd.HasParent() {
		b.WriteString("\nraddle COMMAND --help shows the flags of a command, raddle help exit-codes the\nexit codes.\n")
	}
	return b.String()
}

// joinLines returns a paragraph as one line if it has lines that are wider than the terminal. Lines of a list or a table
// stay as they are.
func joinLines(paragraph string, columns int) string {
	wide := false
	for line := range strings.SplitSeq(paragraph, "\n") {
		if strings.Contains(line, "  ") || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "- ") {
			return paragraph
		}
		wide = wide || term.TextWidth(line) > columns
	}
	if !wide || columns == 0 {
		return paragraph
	}
	return strings.ReplaceAll(paragraph, "\n", " ")
}

// usageLine returns how a command is called.
func usageLine(cmd *cobra.Command) string {
	switch {
	case cmd.HasAvailableSubCommands():
		return cmd.CommandPath() + " COMMAND"
	case cmd.HasAvailableLocalFlags():
		return cmd.UseLine() + " [FLAGS]"
	}
	return cmd.UseLine()
}

// listCommands lists the commands below a command, those of raddle itself in groups.
func listCommands(b *strings.Builder, cmd *cobra.Command) {
	groups := cmd.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "Commands"}}
	}
	for _, g := range groups {
		b.WriteString("\n" + g.Title + ":\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() && c.GroupID == g.ID {
				fmt.Fprintf(b, "  %-11s %s\n", c.Name(), strings.ToLower(c.Short[:1])+c.Short[1:])
			}
		}
	}
}

// listFlags lists flags in two columns.
func listFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	var left, right []string
	width := 0
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		s := "      --" + f.Name
		if f.Shorthand != "" {
			s = "  -" + f.Shorthand + ", --" + f.Name
		}
		if name != "" {
			s += " " + name
		}
		left = append(left, s)
		right = append(right, usage)
		width = max(width, len(s))
	})
	if left == nil {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for i := range left {
		fmt.Fprintf(b, "%-*s  %s\n", width, left[i], right[i])
	}
}

// listGuides lists the guides in two columns.
func listGuides(b *strings.Builder) {
	b.WriteString("\nGuides (raddle help TOPIC):\n")
	for _, t := range guide.ListTopics() {
		fmt.Fprintf(b, "  %-14s  %s\n", t.Name, t.Title)
	}
	fmt.Fprintf(b, "  also: %s\n", strings.Join(guide.SectionNames(), ", "))
}
