#!/usr/bin/env bash
# The tool of file-reviewer.
set -euo pipefail

# @env LLM_OUTPUT=/dev/stdout Where the result goes

# @cmd Show the directories and files of the project, down to the third level.
# raddle: read-only
get_structure() {
	_in_project
	project_tree >>"$LLM_OUTPUT"
}

_in_project() {
	local shared=${BASH_SOURCE[0]%/*}/../.shared
	if [[ ! -d $shared ]]; then shared=$LLM_ROOT_DIR/agents/.shared; fi # of a copy elsewhere
	. "$shared/project.sh"
	project_enter
}
