#!/usr/bin/env bash
# Tools of code-reviewer: what has changed, and in what kind of project. The repository stays as it is.
set -euo pipefail

# @env LLM_OUTPUT=/dev/stdout Where the result goes

# @cmd Show what has changed as a diff, files that git does not know yet included.
# raddle: read-only
# @option --base The branch, tag or commit to compare with. Without it: the last commit if there are changes since, else where the branch began
get_diff() {
	_in_project
	changes_since "${argc_base:-}"
	echo "Changes since $CHANGES_WHAT ($CHANGES_BASE):" >>"$LLM_OUTPUT"
	changes_diff | awk '
		NR <= 4000 { print }
		END {
			if (NR == 0) print "Nothing has changed."
			if (NR > 4000) print "[" NR - 4000 " more lines: see the others file by file, with git diff COMMIT -- FILE]"
		}' >>"$LLM_OUTPUT"
}

# @cmd List the changed files: what happened to each, and how many lines were added and removed.
# raddle: read-only
# @option --base The branch, tag or commit to compare with. Without it: the last commit if there are changes since, else where the branch began
get_changed_files() {
	_in_project
	changes_since "${argc_base:-}"
	echo "Changes since $CHANGES_WHAT ($CHANGES_BASE):" >>"$LLM_OUTPUT"
	changes_files >>"$LLM_OUTPUT"
}

# @cmd Describe the project: its kind, how it is built and tested, its languages and its documents.
# raddle: read-only
get_project_info() {
	_in_project
	project_about >>"$LLM_OUTPUT"
}

_in_project() {
	local shared=${BASH_SOURCE[0]%/*}/../.shared
	if [[ ! -d $shared ]]; then shared=$LLM_ROOT_DIR/agents/.shared; fi # of a copy elsewhere
	. "$shared/project.sh"
	. "$shared/changes.sh"
	project_enter
}
