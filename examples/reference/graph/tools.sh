# @cmd Look which rope there is.
# raddle: read-only
look() { echo "$LLM_AGENT_VAR_ROPE" >> "$LLM_OUTPUT"; }
