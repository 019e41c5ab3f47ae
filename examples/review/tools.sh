#!/usr/bin/env bash
# Tools of the review. They read the shop and the change next to this file, so that no git repository is needed.
set -euo pipefail

# @env LLM_OUTPUT=/dev/stdout Where the result goes

# @cmd List the changed files.
# raddle: read-only
get_changed_files() {
    sed -n 's|^+++ b/||p' "$(_here)/change.patch" >>"$LLM_OUTPUT"
}

# @cmd Show the change as a diff.
# raddle: read-only
# @option --path Only of this file
get_diff() {
    changed_path=${argc_path:-} awk '
        /^diff / { shown = ENVIRON["changed_path"] == "" || $NF == "b/" ENVIRON["changed_path"] }
        shown' "$(_here)/change.patch" >>"$LLM_OUTPUT"
}

# @cmd Read a file as it is after the change, with the numbers of its lines.
# raddle: read-only
# @option --path![`_files`] The file
read_file() {
    awk '{ print NR ": " $0 }' "$(_here)/${argc_path:?}" >>"$LLM_OUTPUT"
}

# @cmd Find lines of all files by an extended regular expression.
# raddle: read-only
# @option --pattern! The regular expression
search() {
    cd "$(_here)"
    grep -rnE -e "${argc_pattern:?}" shop >>"$LLM_OUTPUT" || echo "Nothing matches." >>"$LLM_OUTPUT"
}

_here() {
    echo "${LLM_AGENT_ROOT_DIR:-.}"
}

_files() {
    cd "$(_here)" && printf '%s\n' shop/*.py
}
