#!/usr/bin/env bash
# Tools of the assistant in bash: one function each, described by the comments
# above it.
set -euo pipefail

# @env LLM_OUTPUT=/dev/stdout Where the result goes

# @cmd Tell the state of an order.
# raddle: read-only
# @option --number! <INT> The number of the order
order_status() {
    local orders="${LLM_AGENT_ROOT_DIR:-.}/data/orders.csv"
    if ! grep "^${argc_number:?}," "$orders" >>"$LLM_OUTPUT"; then
        echo "There is no order ${argc_number}." >>"$LLM_OUTPUT"
    fi
}

# @cmd Write a note for the colleagues in the shop.
# raddle: idempotent
# @option --text! What they should know
# @option --urgency[low|high] How soon they should read it
leave_note() {
    printf '%s\t%s\n' "${argc_urgency:-low}" "${argc_text:?}" >>"${RADDLE_NOTES:-/dev/null}"
    echo "The note is left." >>"$LLM_OUTPUT"
}
