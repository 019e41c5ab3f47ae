#!/usr/bin/env bash
# Tools of coder. Paths are those of the project; what lies outside of it is refused.
set -euo pipefail

# @env LLM_OUTPUT=/dev/stdout Where the result goes

# @cmd Read a file of the project, with the numbers of its lines. At most 800 lines.
# raddle: read-only
# @option --path! The file, from the project's directory
read_file() {
	_in_project
	project_read "${argc_path:?}" >>"$LLM_OUTPUT"
}

# @cmd Write a whole file of the project, new or in place of what is there. To change a part of a file use fs_patch.
# raddle: idempotent
# @option --path! The file, from the project's directory
# @option --content! All that the file is to hold
write_file() {
	_in_project
	project_path "${argc_path:?}"
	[[ ! -d $REPLY ]] || project_fail "'$argc_path' is a directory."
	mkdir -p "${REPLY%/*}"
	printf '%s' "${argc_content?}" >"$REPLY"
	echo "Written: ${REPLY#"${PROJECT%/}"/}, $(awk 'END { print NR }' "$REPLY") lines" >>"$LLM_OUTPUT"
}

# @cmd Find files that are like one that is to be written, to learn from them how the project does it.
# raddle: read-only
# @option --path! The file, which need not exist
find_similar_files() {
	_in_project
	project_similar "${argc_path:?}" >>"$LLM_OUTPUT"
}

# @cmd Compile or check the project with its own tools. Fails, with the messages, if that does.
# raddle: idempotent
verify_build() {
	_in_project
	project_detect
	project_run check "${PROJECT_CHECK:-$PROJECT_BUILD}"
}

# @cmd Run the tests of the project. Fails, with what they printed, if they do.
# raddle: idempotent
run_tests() {
	_in_project
	project_detect
	project_run test "$PROJECT_TEST"
}

# @cmd Describe the project: its kind, how it is built and tested, and its directories and files.
# raddle: read-only
get_project_structure() {
	_in_project
	{
		project_about
		echo
		project_tree
	} >>"$LLM_OUTPUT"
}

# @cmd Find lines by an extended regular expression, as file:line:text. At most 100.
# raddle: read-only
# @option --pattern! The regular expression, as for grep -E
search_code() {
	_in_project
	project_search "${argc_pattern:?}" >>"$LLM_OUTPUT"
}

_in_project() {
	local shared=${BASH_SOURCE[0]%/*}/../.shared
	if [[ ! -d $shared ]]; then shared=$LLM_ROOT_DIR/agents/.shared; fi # of a copy elsewhere
	. "$shared/project.sh"
	project_enter
}
