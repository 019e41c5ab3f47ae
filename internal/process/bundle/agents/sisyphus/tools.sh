#!/usr/bin/env bash
# Tools of sisyphus: what the project is, and whether it is sound.
set -euo pipefail

# @env LLM_OUTPUT=/dev/stdout Where the result goes

# @cmd Describe the project: its kind, how it is built and tested, its languages and its documents.
# raddle: read-only
get_project_info() {
	_in_project
	project_about >>"$LLM_OUTPUT"
}

# @cmd Build the project with its own tools, or check it where there is nothing to build. Fails, with the messages, if that does.
# raddle: idempotent
run_build() {
	_in_project
	project_detect
	project_run build "${PROJECT_BUILD:-$PROJECT_CHECK}"
}

# @cmd Run the tests of the project. Fails, with what they printed, if they do.
# raddle: idempotent
run_tests() {
	_in_project
	project_detect
	project_run test "$PROJECT_TEST"
}

_in_project() {
	local shared=${BASH_SOURCE[0]%/*}/../.shared
	if [[ ! -d $shared ]]; then shared=$LLM_ROOT_DIR/agents/.shared; fi # of a copy elsewhere
	. "$shared/project.sh"
	project_enter
}
