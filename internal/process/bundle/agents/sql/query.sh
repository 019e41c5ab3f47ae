#!/usr/bin/env bash
# Tells queries that only read from everything else. Databases disagree about quoting, so a text that one of them could take apart in another way
# is refused: what is refused here can still be run with write_query, for which the user is asked.

query_refuse() {
	echo "Refused: $1. $2" >&2
	exit 1
}

# query_plain TEXT: the text is SQL and no command of usql, which could start programs and write files.
query_plain() {
	case $1 in
	*'\'*) query_refuse "the text holds a backslash, which usql takes for a command of its own" "Write it without." ;;
	esac
}

# query_reads TEXT: it is one statement that reads, whatever database it is for.
query_reads() {
	local bare word hint="If it is to change something, use write_query."
	local dollars='\$[A-Za-z0-9_]*\$' brackets="\[[^]]*['\"\`]"
	query_plain "$1"
	case $1 in
	*'--'* | *'/*'* | *'#'*) query_refuse "the text holds a comment, or what another database takes for one" "Leave it out." ;;
	esac
	if [[ $1 =~ $dollars ]]; then query_refuse "the text holds a quotation with dollar signs" "Use single quotes."; fi
	if [[ $1 =~ $brackets ]]; then query_refuse "there is a quotation mark behind a bracket" "Write it in another way."; fi
	bare=$(query_bare "$1") || query_refuse "a quotation mark is not closed" "Close it."
	bare=${bare%;}
	case $bare in
	*';'*) query_refuse "there is more than one statement" "Send one at a time." ;;
	esac
	read -r word _ <<<"${bare//[^a-z0-9_]/ }" || true
	case $word in
	select | with | values | show | describe | desc | explain) ;;
	*) query_refuse "a query that reads begins with select, with, values, show, describe or explain" "$hint" ;;
	esac
	for word in ${bare//[^a-z0-9_]/ }; do
		case $word in
		insert | update | delete | merge | upsert | drop | alter | create | truncate | rename | grant | revoke | into | call | exec | execute | do | \
			copy | load | lock | unlock | attach | detach | vacuum | analyze | analyse | reindex | refresh | set | reset | begin | commit | rollback | \
			pragma | handler | prepare | nextval | setval | load_extension | load_file | lo_export | lo_import | lo_unlink | dblink_exec | \
			pg_terminate_backend | pg_cancel_backend | pg_reload_conf | set_config | xp_cmdshell)
			query_refuse "'$word' does more than read" "$hint A column of that name needs quotes."
			;;
		esac
	done
}

# query_bare TEXT: prints it in small letters, blanks at its ends and all that is quoted left out; fails if a quotation is open at the end.
query_bare() {
	printf '%s' "$1" | tr '\n\r\t' '   ' | LC_ALL=C awk '
		{
			text = tolower($0); out = quote = ""
			for (i = 1; i <= length(text); i++) {
				c = substr(text, i, 1)
				if (quote != "") { if (c == quote) quote = "" }
				else if (c == "\047" || c == "\"" || c == "`") { quote = c; out = out " " }
				else out = out c
			}
			if (quote != "") exit 1
			sub(/^[ ]+/, "", out); sub(/[ ]+$/, "", out)
			print out
		}'
}
