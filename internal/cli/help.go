package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// printHelp writes a command's help: what it does, how to call it, examples,
// commands and flags. The user asked for it, so it goes to standard output.
func (env *environment) printHelp(cmd *cobra.Command, _ []string) {
	var b strings.Builder
	b.WriteString(cmd.Short + ".\n")
	if cmd.Long != "" {
		b.WriteString("\n" + strings.TrimSpace(cmd.Long) + "\n")
	}
	b.WriteString("\nUsage:\n")
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n", cmd.CommandPath())
	} else {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.Example != "" {
		b.WriteString("\nExamples:\n" + cmd.Example + "\n")
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-11s %s\n", c.Name(), lowerFirst(c.Short))
			}
		}
	}
	helpFlags(&b, "Flags", cmd.LocalNonPersistentFlags())
	if cmd.HasParent() {
		helpFlags(&b, "Flags of all commands", cmd.InheritedFlags())
	} else {
		helpFlags(&b, "Flags of all commands", cmd.PersistentFlags())
	}
	_, _ = env.out.Write([]byte(b.String()))
}

// helpFlags lists flags in two columns.
func helpFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
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
		left, right = append(left, s), append(right, usage)
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

// helpCommand is the command "help COMMAND".
func (env *environment) helpCommand(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err != nil || found == nil || len(rest) > 0 {
		return env.noCommand(cmd.Root(), args)
	}
	return found.Help()
}

// lowerFirst makes the first letter of a sentence lower case.
func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }
