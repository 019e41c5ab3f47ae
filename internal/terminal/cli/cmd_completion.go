package cli

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
)

func newCompletionCommand(con *console.Console) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print the completion script of a shell",
		Long:  "The shells are bash, zsh, fish and powershell. Names of agents, ids of runs, keys and formats are completed too.\nraddle init sets completion up for your shell.",
		Example: `  eval "$(raddle completion bash)"                         for this shell
  raddle completion zsh > "${fpath[1]}/_raddle"            permanently
  raddle completion fish > ~/.config/fish/completions/raddle.fish`,
		Args:      checkArgCount(1, 1, "the name of a shell"),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return WriteBashCompletion(root, con.Out)
			case "zsh":
				return root.GenZshCompletion(con.Out)
			case "fish":
				return root.GenFishCompletion(con.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(con.Out)
			}
			return ending.BadUsage(ending.SuggestWord(args[0], shells), "there is no completion for %q", args[0])
		},
	}
}

// bashWordsCall is the line of the generated script that needs the package bash-completion.
const bashWordsCall = `_get_comp_words_by_ref "$@" cur prev words cword`

// bashWords replaces that function, so that completion works in a shell without the package, also in bash 3.2. It joins
// the words that bash has split at = and :, up to the cursor.
const bashWords = `
# Sets cur, prev, words and cword from the line up to the cursor. Words are split only at blanks.
__raddle_split_line()
{
    local line="${COMP_LINE:0:COMP_POINT}" rest word i
    words=()
    for ((i = 0; i <= COMP_CWORD && i < ${#COMP_WORDS[@]}; i++)); do
        word="${COMP_WORDS[i]}"
        rest="${line#"${line%%[![:blank:]]*}"}"
        if ((${#word} > ${#rest})); then
            word="$rest"
        fi
        if ((i > 0)) && [[ "$rest" == "$line" ]]; then
            words[${#words[@]}-1]+="$word"
        else
            words+=("$word")
        fi
        line="${rest:${#word}}"
    done
    cword=$((${#words[@]} - 1))
    cur="${words[cword]}"
    prev=""
    if ((cword > 0)); then
        prev="${words[cword-1]}"
    fi
}
`

// WriteBashCompletion writes the completion script for bash. It needs no other package.
func WriteBashCompletion(root *cobra.Command, w io.Writer) error {
	var b bytes.Buffer
	if err := root.GenBashCompletionV2(&b, true); err != nil {
		return err
	}
	script := b.String()
	if strings.Count(script, bashWordsCall) != 1 {
		return errors.New("the generated script has changed: it does not call _get_comp_words_by_ref once")
	}
	script = strings.Replace(script, bashWordsCall, "__raddle_split_line", 1)
	head, rest, _ := strings.Cut(script, "\n")
	_, err := io.WriteString(w, head+"\n"+bashWords+rest)
	return err
}
