#!/bin/sh
# Installs raddle for the user who runs it, without root: ~/.local/bin/raddle.
#
#   sh install.sh [--dir DIR] [--version VERSION] [--replace] [--checksum-only] [--from ADDRESS]
#   sh install.sh --uninstall [--dir DIR]
#
# It needs tar, awk, openssl, and curl or wget. It writes one file into DIR, and nothing else.

# A shell reads to the end of these braces before it runs anything, so that a part of this script does nothing.
{
set -eu

# make release sets these two.
releases=''
key=''

say() { printf '%s\n' "$*" >&2; }

fail() {
	say "install.sh: $1"
	[ -z "${2:-}" ] || say "next: $2"
	exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

usage() {
	say 'usage: sh install.sh [--dir DIR] [--version VERSION] [--replace] [--checksum-only] [--from ADDRESS]'
	say '       sh install.sh --uninstall [--dir DIR]'
	say '  --dir DIR        install into DIR instead of ~/.local/bin'
	say '  --version V      install this version instead of the newest one'
	say '  --replace        also replace a newer program, or one that is no release'
	say '  --checksum-only  verify checksums without the signature: where there is no openssl'
	say '  --from ADDRESS   read releases from a mirror; their signature is verified all the same'
	say '  --uninstall      remove the program and its cache; your configuration, agents and runs stay'
}

# read_flags sets what the flags say.
read_flags() {
	dir='' version='' replace='' unsigned='' uninstall=''
	while [ $# -gt 0 ]; do
		case $1 in
		--dir | --version | --from)
			[ $# -ge 2 ] && [ -n "$2" ] || fail "$1 needs a value" 'sh install.sh --help'
			case $1 in
			--dir) dir=$2 ;;
			--version) version=v${2#v} ;;
			--from) releases=$2 ;;
			esac
			shift
			;;
		--replace) replace=1 ;;
		--checksum-only) unsigned=1 ;;
		--uninstall) uninstall=1 ;;
		-h | --help)
			usage
			exit 0
			;;
		*) fail "unknown argument: $1" 'sh install.sh --help' ;;
		esac
		shift
	done
	if [ -z "$dir" ]; then
		[ -n "${HOME:-}" ] || fail 'HOME is not set' 'name a directory: --dir DIR'
		dir=$HOME/.local/bin
	fi
	case $dir in
	/*) ;;
	*) dir=$PWD/$dir ;;
	esac
	while [ "$dir" != / ] && [ "$dir" != "${dir%/}" ]; do dir=${dir%/}; done
	case $version in
	*[!0-9A-Za-z.+-]*) fail "$version is no version" 'write it as 1.2.3' ;;
	esac
}

# find_platform sets system and arch to the names in those of archives.
find_platform() {
	system=$(uname -s)
	arch=$(uname -m)
	case $system in
	Linux) system=linux ;;
	Darwin)
		system=darwin
		# A shell that Rosetta translates says x86_64 on a machine with arm64.
		if [ "$arch" = x86_64 ] && [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || :)" = 1 ]; then
			arch=arm64
		fi
		;;
	MINGW* | MSYS* | CYGWIN*) fail 'this is Windows' 'use install.ps1 in PowerShell' ;;
	*) fail "there is no release for $system" 'build raddle with Go: go install raddle.dev/cmd/raddle@latest' ;;
	esac
	case $arch in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) fail "there is no release for $arch" 'build raddle with Go: go install raddle.dev/cmd/raddle@latest' ;;
	esac
}

# choose_client sets client to curl or wget, and refuses addresses whose answers anyone on the way could change.
choose_client() {
	case $releases in
	https://*) protocols='=https' ;;
	http://127.0.0.1:* | http://localhost:*) protocols='=http' ;;
	*) fail "$releases is no https address" 'name one: --from ADDRESS' ;;
	esac
	if have curl; then
		client=curl
	elif have wget; then
		client=wget
		# That of busybox does not verify who the server is, and that of GNU follows it to addresses without https.
		if [ -n "$unsigned" ] && [ "$protocols" = '=https' ]; then
			fail 'with --checksum-only the server must be known, and wget is no proof of that' 'install curl, or openssl and leave --checksum-only out'
		fi
	else
		fail 'neither curl nor wget is installed' 'install one of them'
	fi
}

# fetch PATH FILE: writes what the releases have at a path into a file. The shell opens the file: a curl in a box of its
# own may not.
fetch() {
	case $client in
	curl) curl --fail --silent --show-error --location --proto "$protocols" --max-redirs 5 --connect-timeout 30 --max-time 900 "$releases/$1" >"$2" ;;
	wget) wget -q -O - "$releases/$1" >"$2" ;;
	esac || fail "$releases/$1 cannot be read" 'check the network and its proxy, and try again'
	[ -s "$2" ] || fail "$releases/$1 is empty" 'try again'
}

# sum_of FILE: prints the SHA-256 of a file.
sum_of() {
	if have sha256sum; then
		sum=$(sha256sum <"$1") || return 1
		printf '%s\n' "${sum%% *}"
	elif have shasum; then
		sum=$(shasum -a 256 <"$1") || return 1
		printf '%s\n' "${sum%% *}"
	elif have openssl; then
		sum=$(openssl dgst -sha256 <"$1") || return 1
		printf '%s\n' "${sum##*[= ]}"
	else
		return 1
	fi
}

# verify_list: the list of checksums must have been signed with the key of the releases.
verify_list() {
	if [ -n "$unsigned" ]; then
		say 'the signature is not verified, because of --checksum-only'
		return
	fi
	[ -n "$key" ] || fail 'this script was made without the key of the releases, so it cannot verify them' 'take the script from a release'
	have openssl || fail 'openssl is not installed, and verifies the signature of the release' 'install openssl, or trust the server alone: --checksum-only'
	{
		echo '-----BEGIN PUBLIC KEY-----'
		printf '%s\n' "$key" | fold -w 64
		echo '-----END PUBLIC KEY-----'
	} >"$work/key.pem"
	openssl base64 -d -in "$work/checksums.txt.sig" -out "$work/signature" 2>/dev/null &&
		openssl dgst -sha256 -verify "$work/key.pem" -signature "$work/signature" "$work/checksums.txt" >/dev/null 2>&1 ||
		fail 'nothing was installed: the list of checksums was not signed with the key of the releases' 'try again later; if it stays so, report it'
}

# listed_version: prints the version in the name of the archive for Linux, which each release has. The signature covers it.
listed_version() {
	while read -r _ name; do
		name=${name#\*}
		case $name in
		raddle_*_linux_amd64.tar.gz)
			name=${name#raddle_}
			printf 'v%s\n' "${name%_linux_amd64.tar.gz}"
			;;
		esac
	done <"$work/checksums.txt"
}

# listed_sum NAME: prints the checksum of a file.
listed_sum() {
	while read -r sum name; do
		[ "${name#\*}" != "$1" ] || printf '%s\n' "$sum"
	done <"$work/checksums.txt"
}

# is_older A B: succeeds if version A is older than B, in the order of semantic versions.
is_older() {
	awk -v a="${1#v}" -v b="${2#v}" '
	function order(x, y) {
		if (x ~ /^[0-9]+$/ && y ~ /^[0-9]+$/) return x + 0 < y + 0 ? -1 : x + 0 > y + 0
		if (x ~ /^[0-9]+$/) return -1
		if (y ~ /^[0-9]+$/) return 1
		return x "" < y "" ? -1 : x "" > y ""
	}
	function compare(a, b,    i, n, m, x, y, pa, pb, o) {
		sub(/\+.*/, "", a); sub(/\+.*/, "", b)
		pa = ""; pb = ""
		if (i = index(a, "-")) { pa = substr(a, i + 1); a = substr(a, 1, i - 1) }
		if (i = index(b, "-")) { pb = substr(b, i + 1); b = substr(b, 1, i - 1) }
		split(a, x, "."); split(b, y, ".")
		for (i = 1; i <= 3; i++) if (o = order(x[i], y[i])) return o
		if (pa == "" || pb == "") return (pa == "") - (pb == "")
		n = split(pa, x, "."); m = split(pb, y, ".")
		for (i = 1; i <= n && i <= m; i++) if (o = order(x[i], y[i])) return o
		return n < m ? -1 : n > m
	}
	BEGIN { exit compare(a, b) < 0 ? 0 : 1 }'
}

# check_old: what is in the place already must be ours to replace, and not newer.
check_old() {
	[ -e "$program" ] || [ -h "$program" ] || return 0
	if [ -h "$program" ] || [ ! -f "$program" ]; then
		fail "$program is no file of its own: something else has put it there" 'remove it, or name another directory: --dir DIR'
	fi
	if [ -f "$dir/../lib/raddle/installed-by" ]; then
		read -r by <"$dir/../lib/raddle/installed-by" || :
		fail "$program was installed by ${by:-a package}" "update it with that, or name another directory: --dir DIR"
	fi
	[ -z "$replace" ] || return 0
	old=$("$program" --version 2>/dev/null || :)
	old=${old#raddle }
	old=${old%% *}
	case $old in
	v[0-9]*.[0-9]*.[0-9]*) ;;
	*) fail "$program is no release of raddle, so it stays" 'to replace it: --replace' ;;
	esac
	if [ "$old" = "$version" ]; then
		say "raddle $version is installed already: $program"
		exit 0
	fi
	if is_older "$version" "$old"; then
		fail "$program is $old, which is newer than $version, so it stays" 'to replace it: --replace'
	fi
}

# say_path: what is missing for the shell to find the program.
say_path() {
	case :${PATH:-}: in
	*:"$dir":*) ;;
	*)
		case ${SHELL:-} in
		*/fish) line="fish_add_path '$dir'" file='' ;;
		*/zsh) line="export PATH=\"$dir:\$PATH\"" file=.zshrc ;;
		*/bash) line="export PATH=\"$dir:\$PATH\"" file=.bashrc ;;
		*) line="export PATH=\"$dir:\$PATH\"" file=.profile ;;
		esac
		say "$dir is not in your PATH. To add it${file:+, put this into ~/$file}:"
		say "  $line"
		return
		;;
	esac
	found=$(command -v raddle || :)
	[ "$found" = "$program" ] || [ -z "$found" ] || say "your shell finds another raddle first: $found"
}

install_program() {
	[ -n "$releases" ] || fail 'this script was made without the address of releases' 'take the script from a release, or name an address: --from ADDRESS'
	releases=${releases%% *}
	releases=${releases%/}
	find_platform
	choose_client
	have tar || fail 'tar is not installed' 'install it'
	have awk || fail 'awk is not installed' 'install it'
	work=$(mktemp -d) || fail 'there is no room for temporary files' 'set TMPDIR to a directory that can be written'

	folder=latest/download
	[ -z "$version" ] || folder=download/$version
	fetch "$folder/checksums.txt" "$work/checksums.txt"
	[ -n "$unsigned" ] || fetch "$folder/checksums.txt.sig" "$work/checksums.txt.sig"
	verify_list
	listed=$(listed_version)
	case $listed in
	'' | *[!0-9A-Za-z.+-]*) fail 'the list of checksums names no release, or several' 'try again later' ;;
	esac
	[ -z "$version" ] || [ "$version" = "$listed" ] || fail "the server has $listed at the place of $version" 'try again later'
	version=$listed
	check_old

	name=raddle_${version#v}_${system}_$arch
	want=$(listed_sum "$name.tar.gz")
	[ -n "$want" ] || fail "release $version has no $name.tar.gz" 'build raddle with Go'
	say "fetching raddle $version for $system/$arch"
	fetch "download/$version/$name.tar.gz" "$work/archive.tar.gz"
	got=$(sum_of "$work/archive.tar.gz") || fail 'nothing here computes SHA-256' 'install coreutils'
	[ "$got" = "$want" ] || fail "nothing was installed: $name.tar.gz is not the file of the release (SHA-256 $got instead of $want)" 'try again'
	tar -xzf "$work/archive.tar.gz" -C "$work" "$name/raddle" || fail "$name.tar.gz cannot be unpacked" 'try again'

	mkdir -p "$dir" || fail "$dir cannot be made" 'name another directory: --dir DIR'
	stage=$dir/.raddle-install-$$
	cp "$work/$name/raddle" "$stage" || fail "$dir cannot be written" 'name another directory: --dir DIR'
	chmod 755 "$stage"
	"$stage" --version >/dev/null || fail "the program does not run in $dir" 'name a directory whose programs may run: --dir DIR'
	# A rename leaves a running raddle its file, and there is never half a program.
	mv -f "$stage" "$program"
	say "raddle $version is installed: $program"
	say_path
	say 'next: raddle try (without a key), or: raddle init'
}

remove_program() {
	if [ -f "$dir/../lib/raddle/installed-by" ]; then
		read -r by <"$dir/../lib/raddle/installed-by" || :
		fail "$program was installed by ${by:-a package}" 'remove it with that'
	fi
	if [ ! -f "$program" ] || [ -h "$program" ]; then
		fail "there is no raddle of this script in $dir" 'name the directory: --dir DIR'
	fi
	case $("$program" --version 2>/dev/null || :) in
	'raddle '*) ;;
	*) fail "$program does not say that it is raddle, so it stays" "remove it by hand" ;;
	esac
	rm -f "$program" "$dir"/.raddle-update-* "$dir"/.raddle-install-*
	say "removed: $program"
	home=${HOME:-/nonexistent}
	cache=${XDG_CACHE_HOME:-$home/.cache}/raddle
	if [ -d "$cache" ]; then
		rm -rf "$cache"
		say "removed: $cache"
	fi
	for kept in "${RADDLE_CONFIG_DIR:-${XDG_CONFIG_HOME:-$home/.config}/raddle}" "${XDG_STATE_HOME:-$home/.local/state}/raddle"; do
		[ ! -d "$kept" ] || say "yours, and left: $kept"
	done
}

work='' stage=''
trap '[ -z "$work" ] || rm -rf "$work"; [ -z "$stage" ] || rm -f "$stage"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
read_flags "$@"
program=$dir/raddle
if [ -n "$uninstall" ]; then
	remove_program
else
	install_program
fi
exit 0
}
