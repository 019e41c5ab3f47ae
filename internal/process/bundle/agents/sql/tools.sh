#!/usr/bin/env bash
# Tools of sql. They need usql: https://github.com/xo/usql
set -euo pipefail

# @meta require-tools usql
# @env LLM_OUTPUT=/dev/stdout Where the result goes

# @cmd Run one query that only reads.
# raddle: read-only
# @option --query! The query. No comments and no backslashes; one statement
read_query() {
	. "${BASH_SOURCE[0]%/*}/query.sh"
	query_reads "${argc_query:?}"
	_usql "$argc_query"
}

# @cmd Run a statement that changes data or schema. The user is asked first.
# raddle: dangerous
# @option --query! The statement
write_query() {
	. "${BASH_SOURCE[0]%/*}/query.sh"
	query_plain "${argc_query:?}"
	_usql "$argc_query"
	echo "Done." >>"$LLM_OUTPUT"
}

# @cmd List the tables of the database.
# raddle: read-only
list_tables() {
	_usql '\dt'
}

# @cmd Describe the columns of a table.
# raddle: read-only
# @option --table-name! The table, with its schema if need be: sales.orders
describe_table() {
	if [[ ${argc_table_name:?} == *[!A-Za-z0-9_.-]* ]]; then
		echo "'$argc_table_name' is not a name of a table: letters, digits, _, - and . only." >&2
		exit 1
	fi
	_usql "\\d $argc_table_name"
}

# _usql COMMAND: runs it on the database of the variable dsn, without the user's own settings of usql.
_usql() {
	local dsn=${LLM_AGENT_VAR_DSN:-}
	if [[ -z $dsn || $dsn == -* ]]; then
		echo "The agent's variable dsn does not name a database: set it with --agent-variable dsn ADDRESS." >&2
		exit 1
	fi
	usql -X -w -c "$1" "$dsn" </dev/null >>"$LLM_OUTPUT"
}
