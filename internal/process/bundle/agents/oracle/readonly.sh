#!/usr/bin/env bash
# Runs a command line that only reads. No shell ever sees it: it is split here into words and pipes, every program and flag must be one that is
# known to read only, every file must lie in the project, and the programs are then started with exactly these words. Needs project.sh.

# readonly_run COMMAND: runs it and writes what it prints to LLM_OUTPUT; ends the tool if it is refused.
readonly_run() {
	local status=0 i start=0
	readonly_split "$1"
	for ((i = 0; i <= ${#WORDS[@]}; i++)); do
		if ((i == ${#WORDS[@]})) || [[ ${KINDS[i]} == pipe ]]; then
			((i > start)) || readonly_refuse "a command is missing next to |"
			readonly_check "${WORDS[@]:start:i-start}"
			start=$((i + 1))
		fi
	done
	readonly_pipe 0 >>"$LLM_OUTPUT" 2>&1 || status=$?
	if [[ -f $LLM_OUTPUT ]]; then project_trim "$LLM_OUTPUT"; fi
	((status == 0)) || echo "(exit code $status)" >>"$LLM_OUTPUT"
}

readonly_refuse() {
	project_fail "Refused: $1. Only commands that read are run here, joined with | if need be: ls, cat, grep, find, wc, sort, git log and their like."
}

# readonly_split TEXT: sets WORDS, and KINDS with "word" or "pipe" for each. Patterns of files that are not quoted become the files they
# fit. Whatever else has a meaning to a shell is refused.
readonly_split() {
	local text=$1 word='' glob='' begun='' magic='' quote='' c i
	WORDS=() KINDS=()
	[[ $text != *[[:cntrl:]]* ]] || readonly_refuse "the command is more than one line, or holds control characters"
	for ((i = 0; i < ${#text}; i++)); do
		c=${text:i:1}
		if [[ $quote == "'" ]]; then
			if [[ $c == "'" ]]; then quote=''; else word+=$c glob+="\\$c"; fi
			continue
		fi
		case $c in
		'\')
			i=$((i + 1))
			c=${text:i:1}
			[[ -n $c ]] || readonly_refuse "the command ends with a backslash"
			if [[ $quote == '"' && $c != [\"\\\`\$] ]]; then word+='\' glob+='\\'; fi
			word+=$c glob+="\\$c" begun=1
			;;
		'$' | '`') readonly_refuse "$c has a meaning that only a shell knows; within single quotes it is text" ;;
		'"')
			begun=1
			if [[ -n $quote ]]; then quote=''; else quote='"'; fi
			;;
		*)
			if [[ -n $quote ]]; then
				word+=$c glob+="\\$c"
				continue
			fi
			case $c in
			"'") quote="'" begun=1 ;;
			' ') readonly_word ;;
			'|')
				readonly_word
				[[ ${text:i+1:1} != '|' && ${text:i+1:1} != '&' ]] || readonly_refuse "|| and |& join more than what is read"
				WORDS+=('|') KINDS+=(pipe)
				;;
			'&' | ';' | '<' | '>' | '(' | ')' | '{' | '}' | '#' | '!') readonly_refuse "$c is more than a plain command; within quotes it is text" ;;
			'*' | '?' | '[') word+=$c glob+=$c begun=1 magic=1 ;;
			*) word+=$c glob+="\\$c" begun=1 ;;
			esac
			;;
		esac
	done
	[[ -z $quote ]] || readonly_refuse "a quotation mark is not closed"
	readonly_word
}

# readonly_word ends the word that readonly_split is at, in its variables.
readonly_word() {
	local file
	if [[ -n $magic && $word != -* ]]; then
		while IFS= read -r file; do
			[[ -n $file ]] || continue
			[[ $file != -* ]] || file=./$file
			WORDS+=("$file") KINDS+=(word) begun=
		done < <(compgen -G "$glob" || true)
	fi
	if [[ -n $begun ]]; then WORDS+=("$word") KINDS+=(word); fi
	word='' glob='' begun='' magic=''
}

# readonly_pipe FROM: runs the commands from that word on, each into the next, without what the environment may tell them.
readonly_pipe() {
	local from=$1 to=$1
	while ((to < ${#WORDS[@]})) && [[ ${KINDS[to]} != pipe ]]; do to=$((to + 1)); done
	set -- "${WORDS[@]:from:to-from}"
	if [[ $1 == git ]]; then
		shift
		set -- git --no-pager "${PROJECT_GIT[@]}" "$@"
	fi
	set -- env -i "PATH=$PATH" "HOME=${HOME:-/}" "LANG=${LANG:-C}" PAGER=cat GIT_OPTIONAL_LOCKS=0 GIT_TERMINAL_PROMPT=0 TERM=dumb "$@"
	if ((to == ${#WORDS[@]})); then
		"$@"
	else
		"$@" | readonly_pipe $((to + 1))
	fi
}

# readonly_check WORD...: one command reads only, and only in the project.
readonly_check() {
	local name=$1 word operands=0 lines='^[0-9]+(,([0-9]+|\$))?p$'
	shift
	case $name in
	ls | cat | head | nl | cut | tr | rev | comm | cmp | stat | du | basename | dirname | echo | pwd | column | grep | egrep | fgrep) ;;
	tail) readonly_flags "$name" fF --follow --retry --pid -- "$@" ;;
	wc) readonly_flags "$name" '' --files0-from -- "$@" ;;
	diff) readonly_flags "$name" l --paginate -- "$@" ;;
	file) readonly_flags "$name" CmfzZ --compile --magic-file --files-from --uncompress -- "$@" ;;
	tree) readonly_flags "$name" olR --output --fromfile -- "$@" ;;
	sort) readonly_flags "$name" oT --output --compress-program --temporary-directory --files0-from -- "$@" ;;
	rg) readonly_flags "$name" Lzf --pre --pre-glob --follow --hostname-bin --search-zip --file -- "$@" ;;
	uniq)
		for word in "$@"; do if [[ $word != -?* ]]; then operands=$((operands + 1)); fi; done
		((operands <= 1)) || readonly_refuse "uniq with two files writes the second"
		;;
	date)
		for word in "$@"; do [[ $word == +* || $word == -u ]] || readonly_refuse "date with $word may set the clock"; done
		;;
	sed)
		[[ $# -ge 2 && $1 == -n && $2 =~ $lines && ${3-} != -* ]] || readonly_refuse "sed is run only as sed -n '10,20p' FILE"
		;;
	find)
		for word in "$@"; do
			case $word in
			-exec* | -ok* | -delete | -fprint* | -fls | -files0* | -L | -follow) readonly_refuse "find $word does more than look" ;;
			esac
		done
		;;
	git) readonly_git "$@" ;;
	*) readonly_refuse "'$name' is not known to read only" ;;
	esac
	if [[ $name == *grep ]]; then readonly_flags "$name" R --dereference-recursive -- "$@"; fi
	for word in "$@"; do readonly_place "$word"; done
}

# readonly_flags NAME LETTERS LONG... -- WORD...: none of the words is one of these flags, nor a shortened one.
readonly_flags() {
	local name=$1 letters=$2 word flag
	shift 2
	local -a long=()
	while [[ $1 != -- ]]; do
		long+=("$1")
		shift
	done
	shift
	for word in "$@"; do
		case $word in
		--) return 0 ;;
		--?*)
			word=${word%%=*}
			for flag in "${long[@]}"; do
				[[ $flag != "$word"* ]] || readonly_refuse "$name $word does more than read"
			done
			;;
		-?*) [[ -z $letters || ${word#-} != *[$letters]* ]] || readonly_refuse "$name $word does more than read" ;;
		esac
	done
}

# readonly_git WORD...: a command of git that reads, without flags that run programs or write files.
readonly_git() {
	local word
	if [[ ${1-} == --no-pager ]]; then
		readonly_refuse "git needs no --no-pager here"
	fi
	case ${1-} in
	status | log | diff | show | blame | shortlog | describe | rev-parse | rev-list | merge-base | name-rev | ls-files | ls-tree | grep | cat-file | count-objects | show-ref | version) ;;
	branch | tag | remote)
		for word in "${@:2}"; do
			case $word in
			-a | -r | -v | -vv | -l | --all | --list | --remotes | --verbose | --show-current) ;;
			*) readonly_refuse "git $1 $word may change the repository" ;;
			esac
		done
		;;
	stash) [[ ${2-} == list ]] || readonly_refuse "git stash may change the repository" ;;
	*) readonly_refuse "git ${1-} is not known to read only" ;;
	esac
	readonly_flags "git $1" O --output --ext-diff --textconv --open-files-in-pager --no-index --show-signature --filters --git-dir --work-tree \
		--exec-path --config-env --paginate --parseopt --contents --path-format -- "${@:2}"
}

# readonly_place WORD: if it is a file, or ends with one as --flag=FILE and -fFILE do, that lies in the project.
readonly_place() {
	local word=$1 path
	for path in "$word" "${word#*=}" "${word#-?}" "${word#-??}" "${word#@}"; do
		if [[ -n $path && (-e $path || -L $path) ]]; then project_path "$path"; fi
	done
}
