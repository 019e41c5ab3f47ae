// Package frontdoor decides what a command line means that begins with no command: a question to the assistant, an
// agent with its prompt, or a mistake.
package frontdoor

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"raddle.dev/internal/base/wording"
)

// A Door is what a command line is compared with.
type Door struct {
	Root     *cobra.Command
	Ask      *cobra.Command      // the command of questions, which is one of Root
	Run      *cobra.Command      // the command that runs agents, which is one of Root
	IsAgent  func(string) bool   // reports whether a word is the name of an agent
	HasInput func() bool         // reports whether standard input has something to read; it may wait
	Means    func(string) string // returns the command that a word of another program means, or ""
}

// CompleteLine returns a command line with the command that it means. Commands win over agents, and agents over questions.
// These are questions: the verb "explain" without a run and next to a text, a word with a blank in it, words after "--", and words that come with files, with --continue, or
// with a text on standard input. A single word that is no command and no agent stays as it is, and so does everything
// that Ask would refuse.
func (d *Door) CompleteLine(args []string) []string {
	line := d.readLine(args)
	switch {
	case len(args) > 0 && strings.HasPrefix(args[0], "__"):
		return args // a completion
	case d.isBareVerb(line):
		return append([]string{d.Ask.Name()}, args...)
	case len(line.words) > 0 && !line.dashed && d.isCommand(line.words[0]):
		return d.dropHelp(args)
	case len(line.words) > 0 && !line.dashed && d.IsAgent(line.words[0]):
		return append([]string{d.Run.Name()}, args...)
	case d.isQuestion(line):
		return append([]string{d.Ask.Name()}, args...)
	}
	return d.dropHelp(args)
}

// A line is what a command line has in addition to a command.
type line struct {
	words   []string
	dashed  bool            // the first word is behind "--"
	flags   map[string]bool // by their long names
	unknown bool            // there is a flag that Ask has not
}

// readLine reads a command line with the flags of Ask.
func (d *Door) readLine(args []string) line {
	l := line{flags: map[string]bool{}}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			l.dashed = len(l.words) == 0
			l.words = append(l.words, args[i+1:]...)
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			l.words = append(l.words, arg)
			continue
		}
		flag, attached := d.findFlag(arg)
		if flag == nil {
			l.unknown = true
			continue
		}
		l.flags[flag.Name] = true
		if flag.NoOptDefVal == "" && !attached {
			i++ // its value
		}
	}
	return l
}

// findFlag returns the flag of a word, and whether its value is part of the word; nil if Ask has no such flag.
func (d *Door) findFlag(word string) (flag *pflag.Flag, attached bool) {
	name, _, attached := strings.Cut(word, "=")
	sets := []*pflag.FlagSet{d.Ask.Flags(), d.Root.PersistentFlags()}
	for _, set := range sets {
		if long, ok := strings.CutPrefix(name, "--"); ok {
			flag = set.Lookup(long)
		} else {
			flag = set.ShorthandLookup(name[1:2])
			attached = len(word) > len("-x")
		}
		if flag != nil {
			return flag, attached
		}
	}
	return nil, attached
}

// isCommand reports whether a word is a command of Root.
func (d *Door) isCommand(word string) bool {
	return word == "help" || slices.ContainsFunc(d.Root.Commands(), func(c *cobra.Command) bool {
		return c.Name() == word || c.HasAlias(word)
	})
}

// isQuestion reports whether a line without a command is a question.
func (d *Door) isQuestion(l line) bool {
	switch {
	case l.unknown:
		return false
	case l.dashed && len(l.words) > 0, l.flags["file"]:
		return true
	case len(l.words) == 0:
		return d.HasInput()
	case strings.ContainsAny(strings.TrimSpace(l.words[0]), " \t\n"), l.flags["continue"]:
		return true
	}
	return l.words[0] == "-" || !d.isNear(l.words[0]) && d.HasInput()
}

// verb is a command about a run that is also what people ask about a text: "cat x | raddle explain".
const verb = "explain"

// isBareVerb reports whether a line is the verb without the run that the command needs, next to files or a text.
func (d *Door) isBareVerb(l line) bool {
	if len(l.words) == 0 || l.dashed || l.words[0] != verb || l.unknown || l.flags["help"] {
		return false
	}
	if len(l.words) > 1 && mayBeRun(l.words[1]) {
		return false
	}
	return l.flags["file"] || l.flags["continue"] || d.HasInput()
}

// mayBeRun reports whether a word may be the id of a run, the beginning of one, or another name for one. Ids begin with
// a digit.
func mayBeRun(word string) bool {
	return word == "" || '0' <= word[0] && word[0] <= '9' || strings.HasPrefix(word, "last") || strings.ContainsAny(word, "/@~")
}

// isNear reports whether a word is probably a mistyped command, or a command of another program.
func (d *Door) isNear(word string) bool {
	var names []string
	for _, c := range d.Root.Commands() {
		names = append(names, c.Name())
	}
	return d.Means(word) != "" || wording.FindNearest(word, names) != ""
}

// dropHelp removes --help from a line whose word is no command, so that the word is reported.
func (d *Door) dropHelp(args []string) []string {
	found, rest, err := d.Root.Find(args)
	if err != nil || !found.HasSubCommands() || found == d.Root && d.isHelp(args) {
		return args
	}
	end := len(args)
	if at := slices.Index(args, "--"); at >= 0 {
		end = at
	}
	if !slices.ContainsFunc(rest, func(w string) bool { return !strings.HasPrefix(w, "-") }) {
		return args
	}
	kept := slices.DeleteFunc(slices.Clone(args[:end]), func(w string) bool { return w == "--help" || w == "-h" })
	return append(kept, args[end:]...)
}

// isHelp reports whether a line calls the command help, which Root has only when it is executed.
func (d *Door) isHelp(args []string) bool {
	l := d.readLine(args)
	return len(l.words) > 0 && l.words[0] == "help"
}
