#!/usr/bin/env bash
# What the tools of several agents share: where the project is, what it is made of, how it is built and tested. Source this file; it does
# nothing by itself. It needs bash 3.2 and the usual tools of a Unix system, and never writes into the project.

# project_fail TEXT: tells the model what is wrong and what to do, and ends the tool.
project_fail() {
	printf '%s\n' "$1" >&2
	exit 1
}

# project_enter: goes to the project, which the variable project_dir names, and sets PROJECT to where that really is.
project_enter() {
	local dir=${LLM_AGENT_VAR_PROJECT_DIR:-.}
	cd -- "$dir" 2>/dev/null || project_fail "There is no directory '$dir': set the agent's variable project_dir to the project."
	PROJECT=$(pwd -P)
}

# project_path PATH: sets REPLY to where a path of the project really is, links followed. The last parts of it need not exist. What lies
# outside the project, or belongs to git, is refused.
project_path() {
	local path=$1 rest='' link hops=0
	case $path in
	/*) ;;
	*) path=$PROJECT/$path ;;
	esac
	path=${path%/}
	while [[ -L $path ]]; do
		hops=$((hops + 1))
		((hops <= 40)) || project_fail "The links of '$1' lead in a circle."
		link=$(readlink "$path")
		case $link in
		/*) path=$link ;;
		*) path=${path%/*}/$link ;;
		esac
	done
	while [[ ! -d ${path:-/} ]]; do
		rest=/${path##*/}$rest
		path=${path%/*}
	done
	case $rest/ in
	*/../* | */./*) project_fail "The path '$1' leads through a directory that does not exist." ;;
	esac
	path=$(cd -P -- "${path:-/}" 2>/dev/null && pwd -P) || project_fail "'$1' cannot be entered."
	REPLY=${path%/}$rest
	case $REPLY/ in
	"${PROJECT%/}"/*) ;;
	*) project_fail "'$1' is outside the project ($PROJECT): name a path inside it." ;;
	esac
	case ${REPLY#"$PROJECT"}/ in
	*/[.][gG][iI][tT]/*) project_fail "'$1' belongs to git: use git to look at it." ;;
	esac
}

# PROJECT_GIT are settings for git that keep it from running programs which files of the project may name.
PROJECT_GIT=(-c safe.bareRepository=explicit -c core.fsmonitor=false -c core.quotePath=false -c color.ui=false)

# project_git WORD...: git as a reader needs it.
project_git() {
	GIT_OPTIONAL_LOCKS=0 git --no-pager "${PROJECT_GIT[@]}" "$@"
}

# project_uses_git: the project is in a git working tree.
project_uses_git() {
	[[ $(project_git rev-parse --is-inside-work-tree 2>/dev/null) == true ]]
}

# project_find: the files that belong to a project without git: not what is fetched or built.
project_find() {
	find . -type d \( -name '.?*' -o -name node_modules -o -name target -o -name dist -o -name build -o -name vendor -o -name __pycache__ \) \
		-prune -o -type f "$@"
}

# project_files: the files of the project, one a line, sorted; with git those that it does not ignore.
project_files() {
	if project_uses_git; then
		project_git ls-files --cached --others --exclude-standard
	else
		project_find -print | sed 's|^\./||'
	fi | LC_ALL=C sort -u
}

# project_tree: the directories and files down to the third level; what lies deeper is counted.
project_tree() {
	project_files | awk -F/ '
		{
			files[NR] = $0
			dir = ""
			for (i = 1; i < NF; i++) { dir = dir $i "/"; below[dir]++ }
		}
		END {
			for (n = 1; n <= NR; n++) {
				parts = split(files[n], part, "/")
				dir = indent = ""
				for (i = 1; i < parts && i <= 3; i++) {
					dir = dir part[i] "/"
					if (!(dir in told)) { told[dir] = 1; say(indent part[i] "/ (" below[dir] (below[dir] == 1 ? " file)" : " files)")) }
					indent = indent "  "
				}
				if (parts <= 3) say(indent part[parts])
			}
			if (lines > 300) print "[" lines - 300 " more lines: look into single directories]"
			if (NR == 0) print "The project has no files yet."
		}
		function say(line) { if (++lines <= 300) print line }'
}

# project_read PATH [LINES]: lines of a file with their numbers. LINES is 20-60, 20- or 60; without it, the first 800.
project_read() {
	local lines=${2:-} first=1 last=0 range='^([0-9]+)(-([0-9]*))?$'
	project_path "$1"
	[[ ! -d $REPLY ]] || project_fail "'$1' is a directory."
	[[ -f $REPLY ]] || project_fail "There is no file '$1' in the project."
	if [[ $lines =~ $range ]]; then
		first=$((10#${BASH_REMATCH[1]})) last=${BASH_REMATCH[3]}
		if [[ -z ${BASH_REMATCH[2]} ]]; then last=$first; fi
	elif [[ -n $lines ]]; then
		project_fail "lines is '$lines': write a line such as 20, or a range such as 20-60."
	fi
	LC_ALL=C tr -d '\000' <"$REPLY" | cmp -s - "$REPLY" || project_fail "'$1' is not a text."
	last=$((10#${last:-0}))
	((last > 0)) || last=$((first + 799))
	LC_ALL=C awk -v first="$first" -v last="$last" '
		NR >= first && NR <= last { print NR ": " (length($0) > 2000 ? substr($0, 1, 2000) " [cut]" : $0) }
		END {
			if (NR == 0) print "The file is empty."
			else if (NR < first) print "The file has only " NR " lines."
			else if (NR > last) print "[lines " first " to " last " of " NR "]"
		}' "$REPLY"
}

# project_search PATTERN [GLOB]: the lines that an extended regular expression finds, in files whose names fit.
project_search() {
	local pattern=$1 glob=${2:-} status=0
	printf '' | grep -E -e "$pattern" >/dev/null 2>&1 || status=$?
	((status < 2)) || project_fail "'$pattern' is no extended regular expression: escape what is meant to the letter with a backslash."
	if project_uses_git; then
		project_git grep --untracked -nIE -e "$pattern" -- ${glob:+":(glob)**/$glob"} || true
	elif [[ -n $glob ]]; then
		project_find -name "$glob" -exec grep -nIHE -e "$pattern" {} + | sed 's|^\./||' || true
	else
		project_find -exec grep -nIHE -e "$pattern" {} + | sed 's|^\./||' || true
	fi | LC_ALL=C awk '
		NR <= 100 { print (length($0) > 400 ? substr($0, 1, 400) " [cut]" : $0) }
		END {
			if (NR == 0) print "Nothing matches."
			if (NR > 100) print "[" NR - 100 " more lines: make the pattern narrower]"
		}'
}

# project_glob EXTENSION: a pattern of names for what a model may call a file type: go, .go or *.go.
project_glob() {
	case $1 in
	'') REPLY='' ;;
	*[*?[]*) REPLY=${1##*/} ;;
	*) REPLY="*.${1#.}" ;;
	esac
}

# project_similar PATH: files that are like one that exists or is to be written: of its kind and place first, then of its kind and name.
project_similar() {
	local path base name ext
	project_path "$1"
	path=${REPLY#"${PROJECT%/}"/}
	base=${path##*/}
	name=${base%.*} ext=
	if [[ $base == ?*.* ]]; then ext=.${base##*.}; fi
	project_files | similar_path=$path similar_name=$name similar_ext=$ext awk '
		BEGIN {
			path = ENVIRON["similar_path"]; name = ENVIRON["similar_name"]; ext = ENVIRON["similar_ext"]
			dir = path; if (!sub(/\/[^\/]*$/, "", dir)) dir = "."
			kind = name; if (!sub(/^.*[._-]/, "", kind)) kind = "" # such as "test" of parser_test.go
		}
		$0 != path {
			own = $0; sub(/^.*\//, "", own)
			if (ext != "" && (length(own) <= length(ext) || substr(own, length(own) - length(ext) + 1) != ext)) next
			if (ext == "" && own ~ /\./) next
			place = $0; if (!sub(/\/[^\/]*$/, "", place)) place = "."
			stem = substr(own, 1, length(own) - length(ext))
			tail = stem; if (!sub(/^.*[._-]/, "", tail)) tail = ""
			score = (place == dir ? 4 : 0) + (kind != "" && tail == kind ? 3 : 0) + (stem == name ? 3 : 0)
			if (kind == "" && tail == "" && place == dir) score++
			if (score > 0) print score "\t" $0
		}' | LC_ALL=C sort -t "$(printf '\t')" -k1,1nr -k2,2 | awk -F'\t' '
		NR <= 15 { print $2 }
		END { if (NR == 0) print "There is no file like it in the project." }'
}

# project_trim FILE: keeps the beginning and the end of a long text, where errors and sums stand.
project_trim() {
	local kept
	kept=$(LC_ALL=C awk '
		{ line[NR] = length($0) > 1000 ? substr($0, 1, 1000) " [cut]" : $0 }
		END {
			for (n = 1; n <= NR; n++) {
				if (NR > 400 && n == 101) print "[" NR - 400 " lines are left out]"
				if (NR <= 400 || n <= 100 || n > NR - 300) print line[n]
			}
		}' "$1")
	printf '%s\n' "$kept" >"$1"
}

# project_run WHAT COMMAND: runs one of the project's own commands without input, and prints its output. It fails as the command does.
project_run() {
	local what=$1 command=$2 status=0
	if [[ -z $command ]]; then
		echo "The project ($PROJECT_KIND) has no known command to $what it. Find out how, and use execute_command." >>"$LLM_OUTPUT"
		return 0
	fi
	CI=1 bash -c "$command" </dev/null >>"$LLM_OUTPUT" 2>&1 || status=$?
	if [[ -f $LLM_OUTPUT ]]; then project_trim "$LLM_OUTPUT"; fi
	if ((status == 0)); then
		echo "OK: $command" >>"$LLM_OUTPUT"
	else
		echo "FAILED with exit code $status: $command" >>"$LLM_OUTPUT"
	fi
	return "$status"
}

# project_about: what the project is, for a reader who sees it for the first time.
project_about() {
	project_detect
	echo "directory: $PROJECT"
	echo "kind: $PROJECT_KIND"
	echo "build: ${PROJECT_BUILD:-none known}"
	echo "test: ${PROJECT_TEST:-none known}"
	echo "check: ${PROJECT_CHECK:-none known}"
	project_files | awk '
		{ own = $0; sub(/^.*\//, "", own); ext = own; if (!sub(/^.+\./, ".", ext)) ext = "without extension"; count[ext]++ }
		END { for (e in count) print count[e] "\t" e; if (NR == 0) print "0\tnone" }' |
		LC_ALL=C sort -t "$(printf '\t')" -k1,1nr -k2,2 | awk -F'\t' 'NR <= 8 { list = list (NR > 1 ? ", " : "") $2 " " $1 } END { print "files: " list }'
	if project_uses_git; then
		echo "git: branch $(project_git rev-parse --abbrev-ref HEAD 2>/dev/null || echo 'without commits'), $(project_git status --porcelain -- . | awk 'END { print NR }') changed files"
	fi
	local doc docs=
	for doc in README* CONTRIBUTING* ARCHITECTURE* AGENTS.md CLAUDE.md docs; do
		if [[ -e $doc ]]; then docs="$docs $doc"; fi
	done
	echo "to read:${docs:- nothing}"
}

# shellcheck source=detect.sh
. "${BASH_SOURCE[0]%/*}/detect.sh"
