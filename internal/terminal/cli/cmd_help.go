package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/docs/guide"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/updateview"
)

func newHelpCommand(op *opener) *cobra.Command {
	return &cobra.Command{
		Use:               "help [TOPIC]",
		Short:             "Show a guide, or the help of a command",
		Hidden:            true,
		ValidArgsFunction: completeHelp,
		RunE:              func(cmd *cobra.Command, args []string) error { return runHelp(op, cmd.Root(), args) },
	}
}

// runHelp prints a guide, which a terminal shows formatted, or the help of a command. The name of both means the guide.
func runHelp(op *opener, root *cobra.Command, args []string) error {
	if len(args) == 1 {
		if topic := guide.FindTopic(args[0]); topic != nil {
			printGuide(op.Console, topic.Text)
			if isCommand(root, topic.Name) {
				op.PrintNote("the command has help of its own: raddle %s --help", topic.Name)
			}
			return nil
		}
		if text := guide.FindSection(args[0]); text != "" {
			printGuide(op.Console, text)
			return nil
		}
	}
	found, rest, err := root.Find(args)
	switch {
	case err == nil && len(rest) == 0:
		return found.Help()
	case err == nil && found != root:
		return refuseWords(op)(found, rest)
	}
	next := "the guides are " + strings.Join(topicNames(), ", ")
	if near := wording.FindNearest(args[0], slices.Concat(commandNamesOf(root), topicNames(), guide.SectionNames())); near != "" {
		next = "did you mean: raddle help " + near + "? " + strings.ToUpper(next[:1]) + next[1:]
	}
	return ending.BadUsage(next, "there is no guide and no command %q", args[0])
}

// relativeLink matches a link to a file or a heading, which a terminal cannot follow.
var relativeLink = pattern.CompileLater(`\[([^\]\n]+)\]\((?:#|\.\./|[a-z-]+\.md)[^)\s]*\)`)

// printGuide prints Markdown as it is, or formatted on a terminal, where links to other files are only their texts.
func printGuide(con *console.Console, text string) {
	if r := con.MarkdownRenderer(false); r != nil {
		r.Fill = true
		text = r.RenderText(relativeLink().ReplaceAllString(text, "$1"))
	}
	con.Out.PrintExact(text)
}

// completeHelp completes the first word with guides and commands, and further ones with the commands of a command.
func completeHelp(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	found, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var words []string
	if len(args) == 0 {
		for _, t := range guide.ListTopics() {
			words = append(words, describeCompletion(t.Name, t.Title))
		}
		for _, name := range guide.SectionNames() {
			words = append(words, describeCompletion(name, "part of a guide"))
		}
	}
	for _, c := range found.Commands() {
		if c.IsAvailableCommand() && (len(args) > 0 || guide.FindTopic(c.Name()) == nil) {
			words = append(words, describeCompletion(c.Name(), c.Short))
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// commandNamesOf returns the names of the commands below a command.
func commandNamesOf(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

func isCommand(root *cobra.Command, name string) bool {
	found, _, err := root.Find([]string{name})
	return err == nil && found != root
}

func topicNames() []string {
	names := make([]string, len(guide.ListTopics()))
	for i, t := range guide.ListTopics() {
		names[i] = t.Name
	}
	return names
}

// versionOptions are the flags of "version".
type versionOptions struct{ output string }

func newVersionCommand(con *console.Console) *cobra.Command {
	var opts versionOptions
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and what it was built from",
		Args:  checkArgCount(0, 0, ""),
		RunE:  func(*cobra.Command, []string) error { return updateview.PrintBuild(con, opts.output) },
	}
	addOutputFlag(cmd, &opts.output, "write it as `FORMAT`: text or json")
	return cmd
}

func newUpdateCommand(con *console.Console) *cobra.Command {
	opts, cmd := updateview.NewCommand(con)
	addOutputFlag(cmd, &opts.Output, "write it as `FORMAT`: text or json")
	return cmd
}
