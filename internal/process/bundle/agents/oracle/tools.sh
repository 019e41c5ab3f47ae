#!/usr/bin/env bash
# Tools of oracle. All of them only read, and only inside the project.
set -euo pipefail

# @env LLM_OUTPUT=/dev/stdout Where the result goes

# @cmd Read a file, with the numbers of its lines. At most 800 lines.
# raddle: read-only
# @option --path! The file, from the project's directory
read_file() {
	_in_project
	project_read "${argc_path:?}" >>"$LLM_OUTPUT"
}

# @cmd Describe the project: its kind, how it is built and tested, its languages and its documents.
# raddle: read-only
get_project_info() {
	_in_project
	project_about >>"$LLM_OUTPUT"
}

# @cmd Find lines by an extended regular expression, as file:line:text. At most 100.
# raddle: read-only
# @option --pattern! The regular expression, as for grep -E
# @option --file-type Only in files of this type, such as go or *.test.ts
search_code() {
	_in_project
	project_glob "${argc_file_type:-}"
	project_search "${argc_pattern:?}" "$REPLY" >>"$LLM_OUTPUT"
}

# @cmd Run a command that only reads, such as git log, git blame, grep, find, wc, sort; several may be joined with |. Nothing else is run.
# raddle: read-only
# @option --command! The command. Without variables, redirections, substitutions, && and ;
analyze_with_command() {
	_in_project
	. "${BASH_SOURCE[0]%/*}/readonly.sh"
	readonly_run "${argc_command:?}"
}

# @cmd List a directory of the project; directories end with a slash.
# raddle: read-only
# @option --path The directory; without it, that of the project
list_directory() {
	_in_project
	project_path "${argc_path:-.}"
	[[ -d $REPLY ]] || project_fail "There is no directory '${argc_path:-.}' in the project."
	LC_ALL=C ls -1Ap "$REPLY" | awk '
		NR <= 300 { print }
		END {
			if (NR == 0) print "The directory is empty."
			if (NR > 300) print "[" NR - 300 " more]"
		}' >>"$LLM_OUTPUT"
}

_in_project() {
	local shared=${BASH_SOURCE[0]%/*}/../.shared
	if [[ ! -d $shared ]]; then shared=$LLM_ROOT_DIR/agents/.shared; fi # of a copy elsewhere
	. "$shared/project.sh"
	project_enter
}
