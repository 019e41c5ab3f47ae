# Runs one function of a bash tool: bash -c "$(cat run.sh)" TOOL, where TOOL becomes $0. The file named by RADDLE_CALL says what to do, as
# words that end with a NUL byte each; values travel in it as they are, so none is ever quoted, split or evaluated.
#
# The tool's file is sourced as it is. Where it calls the argument parser itself, nothing happens: the line with --argc-eval meets a
# function that prints nothing, and an alias turns the definition and the call of _argc_run, which a generated block ends with, into
# no-ops. The arguments are set afterwards, in the order: values, defaults, required options, required environment, required tools.

_raddle_ops=()
while IFS= read -r -d '' _raddle_item; do
	_raddle_ops[${#_raddle_ops[@]}]=$_raddle_item
done <"$RADDLE_CALL"
unset RADDLE_CALL

argc() { [[ "${1-}" == --argc-eval ]] || command argc "$@"; }
shopt -s expand_aliases
alias _argc_run=': || _raddle_unused'
# A file that ends with a false condition is no failure, and one that fails under "set -e" on the way is: so -e is taken back exactly
# where the file ends.
_raddle_flags=
trap 'if (( ${#BASH_SOURCE[@]} < 2 )); then _raddle_flags=${_raddle_flags:-$-}; set +e; fi' RETURN
source "$0"
trap - RETURN
_raddle_flags=${_raddle_flags:-$-}
set +eu
unalias _argc_run
shopt -u expand_aliases
unset -f argc

_raddle_die() {
	printf '%s\n' "$1" >&2
	exit 1
}

# _raddle_check LABEL CHOICES VALUE...: every value is one of the lines of CHOICES.
_raddle_check() {
	local label=$1 lines=$'\n'$2$'\n' value
	for value in "${@:3}"; do
		[[ "$lines" == *$'\n'"$value"$'\n'* && "$value" != *$'\n'* ]] && continue
		_raddle_die "error: invalid value \`$value\` for $label"$'\n'"  [possible values: ${2//$'\n'/, }]"
	done
}

_raddle_at=0 _raddle_args= _raddle_envs= _raddle_tools=
argc__args=() argc__positionals=() argc__fn=
while (( _raddle_at < ${#_raddle_ops[@]} )); do
	# Each instruction is: word, name, number of values, values.
	_raddle_name=${_raddle_ops[_raddle_at+1]}
	_raddle_count=${_raddle_ops[_raddle_at+2]}
	_raddle_values=("${_raddle_ops[@]:_raddle_at+3:_raddle_count}")
	_raddle_value=${_raddle_values[0]-}
	case ${_raddle_ops[_raddle_at]} in
	set) printf -v "$_raddle_name" %s "$_raddle_value" ;;
	list) eval "$_raddle_name=(\"\${_raddle_values[@]}\")" ;; # the name is made of letters, digits and underscores
	bound) if [[ -z "${!_raddle_name-}" && -n "${!_raddle_value-}" ]]; then printf -v "$_raddle_name" %s "${!_raddle_value}"; fi ;;
	default) if [[ -z "${!_raddle_name-}" ]]; then printf -v "$_raddle_name" %s "$_raddle_value"; fi ;;
	default-fn) if [[ -z "${!_raddle_name-}" ]]; then printf -v "$_raddle_name" %s "$("$_raddle_value")"; fi ;;
	required) if [[ -z "${!_raddle_name-}" ]]; then _raddle_args+=$'\n'"  $_raddle_value"; fi ;;
	choice-fn) _raddle_check "\`<$_raddle_name>\`" "$("$_raddle_value")" "${_raddle_values[@]:1}" ;;
	positionals) argc__positionals+=("${_raddle_values[@]}") ;;
	positional) argc__positionals[${#argc__positionals[@]}]=${!_raddle_name-} ;;
	env-required) if [[ -z "${!_raddle_name-}" ]]; then _raddle_envs+=$'\n'"  $_raddle_name"; fi ;;
	env-default) if [[ -z "${!_raddle_name-}" ]]; then export "$_raddle_name=$_raddle_value"; fi ;;
	env-default-fn) if [[ -z "${!_raddle_name-}" ]]; then export "$_raddle_name=$("$_raddle_value")"; fi ;;
	env-choice)
		if [[ -n "${!_raddle_name-}" ]]; then
			_raddle_check "environment variable \`$_raddle_name\`" "$_raddle_value" "${!_raddle_name}"
		fi
		;;
	env-choice-fn)
		if [[ -n "${!_raddle_name-}" ]]; then
			_raddle_check "environment variable \`$_raddle_name\`" "$("$_raddle_value")" "${!_raddle_name}"
		fi
		;;
	tool) command -v "$_raddle_name" >/dev/null 2>&1 || _raddle_tools+=" $_raddle_name" ;;
	arguments) argc__args=("${_raddle_values[@]}") ;;
	function) argc__fn=$_raddle_name ;;
	esac
	(( _raddle_at += 3 + _raddle_count ))
done
[[ -z "$_raddle_args" ]] || _raddle_die "error: the following required arguments were not provided:$_raddle_args"
[[ -z "$_raddle_envs" ]] || _raddle_die "error: the following required environments were not provided:$_raddle_envs"
[[ -z "$_raddle_tools" ]] || _raddle_die "error: missing tools:$_raddle_tools"
declare -F -- "$argc__fn" >/dev/null || _raddle_die "error: there is no function '$argc__fn' in $0"
unset -f _raddle_die _raddle_check
unset _raddle_ops _raddle_item _raddle_values _raddle_value

case $_raddle_flags in *u*) set -u ;; esac
case $_raddle_flags in *e*) set -e ;; esac
if declare -F _argc_before >/dev/null; then _argc_before; fi
"$argc__fn" ${argc__positionals[@]+"${argc__positionals[@]}"}
_raddle_status=$?
if declare -F _argc_after >/dev/null; then
	_argc_after
	_raddle_status=$?
fi
set +e # what a trap of the script does at the end does not change how the function has ended
exit "$_raddle_status"
