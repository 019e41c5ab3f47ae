#!/usr/bin/env bash
# Tools of explore. All of them only read.
set -euo pipefail

# @env LLM_OUTPUT=/dev/stdout Where the result goes

# @cmd Show the directories and files of the project, down to the third level.
# raddle: read-only
get_structure() {
	_in_project
	project_tree >>"$LLM_OUTPUT"
}

# @cmd Find files by their path. Generated and fetched files are left out.
# raddle: read-only
# @option --pattern! A part of the path, or a pattern such as *_test.go or src/**/*.ts
search_files() {
	_in_project
	project_files | search_pattern=${argc_pattern:?} awk '
		BEGIN {
			pattern = ENVIRON["search_pattern"]
			glob = pattern ~ /[*?]/
			want = glob ? regex(pattern) : tolower(pattern)
		}
		{
			own = $0; sub(/^.*\//, "", own)
			fits = glob ? ($0 ~ want || (pattern !~ /\// && own ~ want)) : index(tolower($0), want)
			if (fits && ++found <= 200) print
		}
		END {
			if (!found) print "No file fits."
			if (found > 200) print "[" found - 200 " more files: make the pattern narrower]"
		}
		function regex(p,   i, c, out) {
			for (i = 1; i <= length(p); i++) {
				c = substr(p, i, 1)
				if (substr(p, i, 3) == "**/") { out = out "(.*/)?"; i += 2 }
				else if (substr(p, i, 2) == "**") { out = out ".*"; i++ }
				else if (c == "*") out = out "[^/]*"
				else if (c == "?") out = out "[^/]"
				else if (c ~ /[A-Za-z0-9_\/-]/) out = out c
				else out = out "\\" c
			}
			return "^" out "$"
		}' >>"$LLM_OUTPUT"
}

# @cmd Find lines by an extended regular expression, as file:line:text. At most 100.
# raddle: read-only
# @option --pattern! The regular expression, as for grep -E
# @option --file-type Only in files of this type, such as go or *.test.ts
search_content() {
	_in_project
	project_glob "${argc_file_type:-}"
	project_search "${argc_pattern:?}" "$REPLY" >>"$LLM_OUTPUT"
}

# @cmd Read a file, with the numbers of its lines. At most 800 lines at a time.
# raddle: read-only
# @option --path! The file, from the project's directory
# @option --lines A line such as 20, or a range such as 20-60 or 20-
read_file() {
	_in_project
	project_read "${argc_path:?}" "${argc_lines:-}" >>"$LLM_OUTPUT"
}

# @cmd Find files that are like a file: of its kind, in its place or with its name.
# raddle: read-only
# @option --path! The file, which need not exist
find_similar() {
	_in_project
	project_similar "${argc_path:?}" >>"$LLM_OUTPUT"
}

_in_project() {
	local shared=${BASH_SOURCE[0]%/*}/../.shared
	if [[ ! -d $shared ]]; then shared=$LLM_ROOT_DIR/agents/.shared; fi # of a copy elsewhere
	. "$shared/project.sh"
	project_enter
}
