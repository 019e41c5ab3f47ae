#!/usr/bin/env bash
# The tool of file-reviewer.
set -euo pipefail

# @env LLM_OUTPUT=/dev/stdout Where the result goes

# @cmd Show the directories and files of the project, down to the third level.
# raddle: read-only
get_structure() {
	. "${BASH_SOURCE[0]%/*}/../.shared/project.sh"
	project_enter
	project_tree >>"$LLM_OUTPUT"
}
