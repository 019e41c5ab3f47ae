#!/usr/bin/env bash
# Tools of the research example: what there is in the library.
set -euo pipefail

# @env LLM_OUTPUT=/dev/stdout Where the result goes

# @cmd List the documents of the library.
# raddle: read-only
list_documents() {
    local file
    for file in "${LLM_AGENT_ROOT_DIR:-.}"/library/*.md; do
        echo "${file##*/}" >>"$LLM_OUTPUT"
    done
}

# @cmd Tell the title of a document, for citing it.
# raddle: read-only
# @option --name! The document, such as tension.md
title_of() {
    local title
    read -r title <"${LLM_AGENT_ROOT_DIR:-.}/library/${argc_name:?}"
    echo "${title#\# }" >>"$LLM_OUTPUT"
}
