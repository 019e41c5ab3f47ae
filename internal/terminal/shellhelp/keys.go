package shellhelp

import (
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/wording"
)

// Shells are the shells that have a key binding.
var Shells = []string{"bash", "zsh", "fish"}

// bindings put the command for the words in the line of the shell into the line, with Alt-E. Nothing is run. If there is
// no command, the line stays as it is.
var bindings = map[string]string{
	"bash": `__raddle_suggest() {
    [[ -n "$READLINE_LINE" ]] || return
    local command
    command="$(raddle -q -e --print -- "$READLINE_LINE" </dev/null)" || return
    [[ -n "$command" ]] || return
    READLINE_LINE="$command"
    READLINE_POINT=${#READLINE_LINE}
}
bind -x '"\ee": __raddle_suggest'`,
	"zsh": `__raddle_suggest() {
    [[ -n "$BUFFER" ]] || return
    local command
    command="$(raddle -q -e --print -- "$BUFFER" </dev/null)" || return
    [[ -n "$command" ]] || return
    BUFFER="$command"
    CURSOR=${#BUFFER}
    zle redisplay
}
zle -N __raddle_suggest
bindkey '\ee' __raddle_suggest`,
	"fish": `function __raddle_suggest
    set -l words (commandline | string collect)
    test -n "$words"; or return
    set -l command (raddle -q -e --print -- "$words" </dev/null | string collect)
    test -n "$command"; or return
    commandline -r -- "$command"
    commandline -f repaint
end
bind \ee __raddle_suggest`,
}

// FindBinding returns the key binding of a shell, to be evaluated by it.
func FindBinding(shell string) (string, error) {
	text, ok := bindings[shell]
	if !ok {
		next := wording.SuggestNearest(shell, Shells, "")
		if next == "" {
			next = "use one of bash, zsh, fish"
		}
		return "", failure.NewUsage(next, "there is no key binding for %q", shell)
	}
	return text, nil
}
