#!/usr/bin/env bash
# Helpers for bash tools: source "$LLM_PROMPT_UTILS_FILE". Needs nothing but bash, and never ends the tool that sources it.
#
# input, confirm, list, checkbox, password, editor, range ask a person and print the answer to stdout. Tools are run by a host and have
# no terminal: there these functions fail with status 1 and say so. In a shell of one's own they ask.
# guard_operation and guard_path do not ask: the host has asked before it started the tool, by rules that a script cannot loosen.

# _prompt_ready TEXT: somebody can be asked. A process in the background must not read the terminal, which would stop it for good.
_prompt_ready() {
	if { : </dev/tty; } 2>/dev/null && [[ "$(ps -o stat= -p "$$" 2>/dev/null)" == *+* ]]; then
		return 0
	fi
	printf 'error: nobody can be asked "%s": a tool has no terminal. Give the answer as an argument of the tool.\n' "$1" >&2
	return 1
}

# _prompt_read QUESTION [-s]: one line that a person types.
_prompt_read() {
	local _prompt_line=
	printf '%s ' "$1" >&2
	IFS= read -r ${2:+"$2"} _prompt_line </dev/tty || return 1
	[[ -z "${2-}" ]] || printf '\n' >&2
	printf '%s\n' "$_prompt_line"
}

input() {
	_prompt_ready "${1-}" && _prompt_read "${1-}"
}

password() {
	_prompt_ready "${1-}" && _prompt_read "${1-}" -s
}

confirm() {
	_prompt_ready "${1-}" || return 1
	local answer
	answer=$(_prompt_read "${1-} [y/N]") || return 1
	case $answer in
	[yY] | [yY][eE][sS]) echo 1 ;;
	*) echo 0 ;;
	esac
}

# _prompt_options OPTION...: the options with their numbers, for a person.
_prompt_options() {
	local n=0 option
	for option in "$@"; do
		n=$((n + 1))
		printf '  %d) %s\n' "$n" "$option" >&2
	done
}

list() {
	_prompt_ready "${1-}" || return 1
	local question=${1-} answer
	shift
	_prompt_options "$@"
	while answer=$(_prompt_read "$question [1-$#]"); do
		if [[ "$answer" =~ ^[0-9]+$ ]] && ((10#$answer >= 1 && 10#$answer <= $#)); then
			echo $((10#$answer - 1))
			return 0
		fi
	done
	return 1
}

checkbox() {
	_prompt_ready "${1-}" || return 1
	local question=${1-} answer number chosen
	shift
	_prompt_options "$@"
	while answer=$(_prompt_read "$question [numbers, or nothing]"); do
		chosen=
		for number in ${answer//,/ }; do
			if ! [[ "$number" =~ ^[0-9]+$ ]] || ((10#$number < 1 || 10#$number > $#)); then
				continue 2
			fi
			chosen+="${chosen:+ }$((10#$number - 1))"
		done
		echo "$chosen"
		return 0
	done
	return 1
}

range() {
	_prompt_ready "${1-}" || return 1
	local answer low=${2:-0} current=${3:-0} high=${4:-100}
	while answer=$(_prompt_read "${1-} [$low-$high, $current]"); do
		answer=${answer:-$current}
		if [[ "$answer" =~ ^-?[0-9]+$ ]] && ((answer >= low && answer <= high)); then
			echo "$answer"
			return 0
		fi
	done
	return 1
}

editor() {
	_prompt_ready "${1-}" || return 1
	local file status=0
	file=$(mktemp) || return 1
	printf '%s\n' "${1-}" >&2
	"${VISUAL:-${EDITOR:-vi}}" "$file" </dev/tty >/dev/tty || status=1
	cat "$file"
	rm -f "$file"
	return "$status"
}

# with_validate COMMAND VALIDATOR: runs the command until the validator takes what it prints, and prints that.
with_validate() {
	local value reason
	while value=$(eval "$1"); do
		if reason=$("$2" "$value"); then
			printf '%s\n' "$value"
			return 0
		fi
		printf '%s\n' "$reason" >&2
	done
	return 1
}

with_validation() { with_validate "$@"; }

validate_present() {
	[[ -z "${1-}" ]] || return 0
	error 'Please specify the value'
	return 1
}

# _prompt_paint CODE TEXT...: a line, coloured where a person reads it.
_prompt_paint() {
	local code=$1
	shift
	if [[ -t 1 && -z "${NO_COLOR-}" && "${TERM-}" != dumb ]]; then
		printf '\033[%sm%s\033[0m\n' "$code" "$*"
	else
		printf '%s\n' "$*"
	fi
}

red() { _prompt_paint 31 "$@"; }
green() { _prompt_paint 32 "$@"; }
gold() { _prompt_paint 33 "$@"; }
yellow() { gold "$@"; }
blue() { _prompt_paint 34 "$@"; }
magenta() { _prompt_paint 35 "$@"; }
cyan() { _prompt_paint 36 "$@"; }
white() { _prompt_paint 37 "$@"; }

error() { red "ERROR: $*"; }
warn() { gold "WARN: $*"; }
info() { cyan "INFO: $*"; }
debug() { blue "DEBUG: $*"; }
trace() { white "TRACE: $*"; }
success() { green "SUCCESS: $*"; }
show_error() { _prompt_paint '91;1' "✘ $*" >&2; }
show_success() { _prompt_paint '92;1' "✔ $*" >&2; }

detect_os() {
	case ${OSTYPE-} in
	solaris*) echo solaris ;;
	darwin*) echo macos ;;
	linux*) echo linux ;;
	*bsd*) echo bsd ;;
	msys* | cygwin*) echo windows ;;
	*) echo unknown ;;
	esac
}

get_opener() {
	case $(detect_os) in
	macos) echo open ;;
	linux) echo xdg-open ;;
	windows) echo start ;;
	*) echo ;;
	esac
}

open_link() {
	local opener
	opener=$(get_opener)
	if [[ -n "$opener" ]] && command -v "$opener" >/dev/null && "$opener" "${1-}"; then
		return 0
	fi
	error "The link could not be opened here, open it yourself: ${1-}"
	return 1
}

guard_operation() { return 0; }

guard_path() {
	[[ $# -ne 2 ]] || return 0
	echo 'usage: guard_path PATH QUESTION' >&2
	return 1
}

# _patch_mismatch DONE: says which line of hunk k differs, where the most of its first lines fit behind the first DONE lines of the file.
# It reads the variables of patch_file.
_patch_mismatch() {
	local at best=$1 most=0 n
	for ((at = $1; at < ${#lines[@]}; at++)); do
		n=0
		while ((starts[k] + n < ends[k] && at + n < ${#lines[@]})) && [[ "${lines[at + n]}" == "${old[starts[k] + n]}" ]]; do
			n=$((n + 1))
		done
		if ((n > most)); then
			best=$at most=$n
		fi
	done
	at=$((best + most))
	echo "error: unable to apply patch: hunk $((k + 1)) fits nowhere after line $1"
	printf '  expected: %s\n' "${old[starts[k] + most]}"
	if ((at < ${#lines[@]})); then
		printf '  actual line %d: %s\n' "$((at + 1))" "${lines[at]}"
	else
		echo '  actual: the end of the file'
	fi
}

# patch_file FILE PATCH: prints the file with the hunks of the patch applied. A hunk begins with @@; its lines begin with a blank, - or +,
# and are compared as they are, in the order of the hunks. Nothing is printed unless every hunk fits.
patch_file() {
	local lines=() old=() starts=() ends=() results=() line hunks=0 open='' i j k from passed result=''
	while IFS= read -r line || [[ -n "$line" ]]; do
		lines[${#lines[@]}]=$line
	done <"$1" || return 1
	# Hunk k has old[starts[k]..ends[k]) and the text results[k].
	while IFS= read -r line || [[ -n "$line" ]]; do
		if [[ "$line" == @@* ]]; then
			open=1
			starts[hunks]=${#old[@]} ends[hunks]=${#old[@]} results[hunks]=''
			hunks=$((hunks + 1))
			continue
		fi
		[[ -n "$open" ]] || continue
		case $line in
		'--- '*) open='' ;; # the next file's name
		'+'*) results[hunks - 1]+=${line:1}$'\n' ;;
		'-'*) old[${#old[@]}]=${line:1} ;;
		' '* | '')
			old[${#old[@]}]=${line:1}
			results[hunks - 1]+=${line:1}$'\n'
			;;
		'\'*) ;;
		*) open='' ;;
		esac
		ends[hunks - 1]=${#old[@]}
	done <"$2" || return 1
	if ((hunks == 0)); then
		echo 'error: no patch' >&2
		exit 1
	fi
	i=0
	for ((k = 0; k < hunks; k++)); do
		from=-1 passed=$i
		for ((; i + ends[k] - starts[k] <= ${#lines[@]}; i++)); do
			for ((j = starts[k]; j < ends[k]; j++)); do
				[[ "${lines[i + j - starts[k]]}" == "${old[j]}" ]] || continue 2
			done
			from=$i
			break
		done
		if ((from < 0)); then
			_patch_mismatch "$passed" >&2
			exit 1
		fi
		results[k]="$from:${results[k]}"
		i=$((from + ends[k] - starts[k]))
	done
	i=0
	for ((k = 0; k < hunks; k++)); do
		from=${results[k]%%:*}
		for (( ; i < from; i++)); do result+=${lines[i]}$'\n'; done
		result+=${results[k]#*:}
		i=$((i + ends[k] - starts[k]))
	done
	for (( ; i < ${#lines[@]}; i++)); do result+=${lines[i]}$'\n'; done
	printf %s "$result"
}
