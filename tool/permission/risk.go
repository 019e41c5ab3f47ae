package permission

import (
	"path/filepath"
	"slices"
	"strings"
)

// An interpreter is a program that runs code from its arguments, from a file, or from
// what it reads.
// Which flags take a value must be known to find the first argument that is not a flag: an
// interpreter without one reads its code from the input. An entry without flags, such as that of
// "deno", runs its input unless a file is named.
type interpreter struct {
	inline string   // letters of the flags behind which the code stands
	plain  string   // letters of flags that take no value
	values string   // letters of flags that take the next word as their value
	longs  []string // long flags behind which the code stands
	module string   // letters of flags that name a module to run
	reads  string   // letters of flags with which it reads code, whatever the other arguments are
}

// shellLike are the flags that shells share.
var shellLike = interpreter{inline: "c", plain: "abefhiklmnpqrtuvxBCEHPT", values: "oO", reads: "s"}

// interpreters maps names, without a version number at the end.
var interpreters = map[string]interpreter{
	"sh": shellLike, "bash": shellLike, "rbash": shellLike, "dash": shellLike, "ash": shellLike, "zsh": shellLike, "ksh": shellLike, "mksh": shellLike,
	"yash": shellLike, "fish": shellLike, "csh": shellLike, "tcsh": shellLike, "pwsh": {inline: "c"}, "nu": {inline: "c"},
	"python": {inline: "c", plain: "bBdEhiIOPqRsSuvVx", values: "WX", module: "m"}, "pypy": {inline: "c", plain: "bBdEhiIOPqRsSuvVx", values: "WX", module: "m"},
	"perl": {inline: "eE", plain: "acfhlnpstTuUvVwWX"}, "ruby": {inline: "e", plain: "achlnpsSvwy", values: "rIC"},
	"node": {inline: "ep", plain: "hicv", values: "rC", longs: []string{"eval", "print"}}, "nodejs": {inline: "ep", plain: "hicv", values: "rC", longs: []string{"eval", "print"}},
	"php": {inline: "rRB", plain: "aemnqvwhil", values: "dcz"}, "lua": {inline: "e", plain: "iEvW", values: "l"}, "luajit": {inline: "e", values: "lj"},
	"deno": {}, "bun": {inline: "ep"}, "tclsh": {}, "expect": {inline: "c"}, "R": {inline: "e"}, "Rscript": {inline: "e"}, "julia": {inline: "eE"}, "osascript": {inline: "e"},
	"guile": {inline: "c"}, "racket": {inline: "e"}, "elixir": {inline: "e"}, "iex": {inline: "e"}, "erl": {}, "ghci": {inline: "e"}, "irb": {inline: "e"},
	"jshell": {}, "groovy": {inline: "e"}, "scala": {inline: "e"}, "ocaml": {inline: "e"}, "sqlite": {}, "psql": {inline: "c"}, "mysql": {inline: "e"},
	"ed": {}, "ex": {inline: "c"}, "at": {}, "batch": {}, "crontab": {}, "parallel": {},
}

// versioned matches the name of an interpreter with a version, such as python3.12.
var versioned = compileLater(`^([A-Za-z]+)-?[0-9][0-9.]*$`)

// interpreterOf returns what is known about an interpreter, by the name or path of its program. The
// version in the name does not matter.
func interpreterOf(name string) (interpreter, bool) {
	name = filepath.Base(name)
	if it, ok := interpreters[name]; ok {
		return it, true
	}
	if m := versioned().FindStringSubmatch(name); m != nil {
		it, ok := interpreters[m[1]]
		return it, ok
	}
	return interpreter{}, false
}

// runsCode reports whether an interpreter runs what it reads, and whether it runs code from its
// arguments. If neither is true, it runs a file, or nothing.
// Where a flag is not known it may take the next word as its value, so the next word is not taken
// for a file. The answer is on the safe side: code is assumed where the arguments can be read in
// two ways.
func (it interpreter) runsCode(args []word) (reads, inline bool) {
	uncertain := 0 // flags that may take the word behind them
	for i, a := range args {
		letters := strings.TrimPrefix(a.text, "-")
		switch {
		case a.vague || a.splits:
			return true, true
		case a.text == "-" || a.text == "/dev/stdin" || strings.HasPrefix(a.text, "/dev/fd/") || strings.HasPrefix(a.text, "/proc/"):
			return true, false
		case len(args) == 1 && slices.Contains([]string{"--version", "-V", "-v", "--help", "-h", "-version", "-help"}, a.text):
			return false, false
		case letters == a.text:
			if uncertain--; uncertain < 0 {
				return slices.Contains([]string{"eval", "repl"}, a.text), a.text == "eval"
			}
		case strings.HasPrefix(letters, "-"):
			long, _, ok := strings.Cut(letters[1:], "=")
			if slices.Contains(it.longs, long) {
				return false, true
			}
			if a.text == "--" && i+1 < len(args) {
				uncertain = 0
			} else if !ok && long != "" {
				uncertain++
			}
		case strings.ContainsAny(letters, it.reads):
			return true, false
		case strings.ContainsAny(letters, it.inline):
			return false, true
		case strings.ContainsAny(letters[:1], it.module):
			return false, false
		case strings.ContainsAny(letters[len(letters)-1:], it.values):
			uncertain++
		case strings.Trim(letters, it.plain) != "" && len(letters) == 1:
			uncertain++
		}
	}
	return true, false
}

// inputRisk is the risk of running input as code.
// risksOf compares with this text.
const inputRisk = "runs its input as code"

// riskOf returns the harm that a command may do, and whether it runs what it reads as
// code. No answer about such a command lasts longer than the call.
// stdin is what makes "curl … | sh" a download that runs, which risksOf finds. It is true as well
// for a program that runs a file it is given, if that file is the input, a device or not known yet.
func (s *shellAnalyzer) riskOf(words []word) (risk string, stdin bool) {
	name := filepath.Base(words[0].text)
	args := words[1:]
	if it, ok := interpreterOf(name); ok && !s.functions[words[0].text] {
		if reads, _ := it.runsCode(args); reads {
			return inputRisk, true
		}
	}
	switch name {
	case "source", ".":
		if len(args) > 0 && (!args[0].isPlain() || strings.HasPrefix(args[0].text, "/dev/") || strings.HasPrefix(args[0].text, "/proc/")) {
			return inputRisk, true
		}
	case "make", "gmake", "awk", "gawk", "mawk", "sed":
		if i := slices.IndexFunc(args, func(a word) bool { return a.text == "-f" || a.text == "--file" }); i >= 0 && i+1 < len(args) {
			if f := args[i+1]; f.text == "-" || strings.HasPrefix(f.text, "/dev/") {
				return inputRisk, true
			}
		}
	}
	if name == "git" {
		if risk := s.gitRisk(args); risk != "" {
			return risk, false
		}
	}
	if slices.Contains(downloaders, name) {
		return "reaches the network (" + listHosts(args) + ")", false
	}
	return describeDamage(name, args), false
}

// downloaders are programs that fetch from the network.
var downloaders = []string{"aria2c", "curl", "ftp", "http", "https", "lftp", "lynx", "nc", "ncat", "netcat", "sftp", "socat", "telnet", "tftp", "w3m", "wget", "xh"}

// takesValue matches flags of downloaders whose value is not an address.
// A value such as the name of an output file would otherwise be shown as a host.
var takesValue = compileLater(`^(-[oHdXAuebcFTKmwxrEQtyYzOPUaiRD]|--[a-z-]+)$`)

// listHosts names the hosts of a download, as a person reads them.
// If an argument is a URL, only URLs count. Otherwise every argument that is neither a flag nor the
// value of one may be a host, such as in "nc example.com 80".
func listHosts(args []word) string {
	var hosts []string
	unknown := false
	for _, a := range args {
		unknown = unknown || !a.isPlain()
		for _, h := range hostsIn(a.text, false) {
			hosts = append(hosts, h[0])
		}
	}
	urls := len(hosts) > 0
	for i, a := range args {
		if urls || !a.isPlain() || strings.HasPrefix(a.text, "-") || i > 0 && takesValue().MatchString(args[i-1].text) {
			continue
		}
		for _, h := range hostsIn(a.text, true) {
			hosts = append(hosts, h[0])
		}
	}
	slices.Sort(hosts)
	switch hosts = slices.Compact(hosts); {
	case len(hosts) == 0:
		return "an address that is known only when it runs"
	case unknown:
		return strings.Join(hosts, ", ") + ", or another address"
	}
	return strings.Join(hosts, ", ")
}

// destructive are programs whose effect cannot be undone.
var destructive = map[string]string{
	"rm": "removes files permanently", "unlink": "removes files permanently", "shred": "destroys files permanently", "truncate": "empties or cuts files",
	"dd": "overwrites a file or a disk", "wipefs": "destroys a disk", "fdisk": "changes a disk", "sfdisk": "changes a disk", "parted": "changes a disk",
	"mkswap": "formats a disk", "shutdown": "stops this machine", "reboot": "stops this machine", "poweroff": "stops this machine", "halt": "stops this machine",
}

// describeDamage returns what a command does that cannot be undone; "": nothing that is known.
// The text is the end of a sentence that begins with "it". Commands that can be undone are not
// listed, even if they change a lot.
func describeDamage(name string, args []word) string {
	switch what := destructive[name]; {
	case what != "":
		return what
	case strings.HasPrefix(name, "mkfs") || strings.HasPrefix(name, "mke2fs"):
		return "formats a disk"
	}
	switch name {
	case "chmod", "chown", "chgrp":
		if hasFlag(args, "R", "recursive") {
			return "changes the rights of everything in a directory"
		}
	case "find":
		if slices.ContainsFunc(args, func(a word) bool { return a.text == "-delete" }) {
			return "removes files permanently"
		}
	case "rsync":
		if slices.ContainsFunc(args, func(a word) bool { return strings.HasPrefix(a.text, "--del") || a.text == "--remove-source-files" }) {
			return "removes files permanently"
		}
	case "git":
		return gitDestroys(args)
	}
	return ""
}

// gitDestroys returns what a command of git does that cannot be undone; "": nothing that is known.
// It skips the flags before the command, some of which take a value.
func gitDestroys(args []word) string {
	i := 0
	for i < len(args) && strings.HasPrefix(args[i].text, "-") {
		if t := args[i].text; t == "-C" || t == "-c" || t == "--git-dir" || t == "--work-tree" || t == "--namespace" {
			i++
		}
		i++
	}
	if i >= len(args) {
		return ""
	}
	const loses = "throws away work that is kept nowhere else"
	sub := args[i].text
	rest := args[i+1:]
	begins := func(words ...string) bool { return len(rest) > 0 && slices.Contains(words, rest[0].text) }
	switch sub {
	case "push":
		if hasFlag(rest, "fd", "force", "force-with-lease", "force-if-includes", "mirror", "delete", "prune") ||
			slices.ContainsFunc(rest, func(a word) bool {
				return !a.isPlain() || strings.HasPrefix(a.text, "+") || strings.HasPrefix(a.text, ":")
			}) {
			return "replaces or removes what others have on the server"
		}
	case "reset":
		if hasFlag(rest, "", "hard", "merge") {
			return loses
		}
	case "checkout", "switch":
		if hasFlag(rest, "fB", "force", "discard-changes") || slices.ContainsFunc(rest, func(a word) bool { return a.text == "--" || a.text == "." }) {
			return loses
		}
	case "branch":
		if hasFlag(rest, "DM", "force") || hasFlag(rest, "d", "delete") && hasFlag(rest, "f", "force") {
			return loses
		}
	case "stash":
		if begins("drop", "clear") {
			return loses
		}
	case "reflog":
		if begins("expire", "delete") {
			return loses
		}
	case "clean", "restore", "filter-branch", "filter-repo", "prune":
		return loses
	}
	return ""
}

// hidesCode reports whether the words of a command hold code that is not looked into.
// A rule that denies a command may be about such code, so it makes the whole command ask: see
// matcher.mayHide.
func (s *shellAnalyzer) hidesCode(words []word) bool {
	name := filepath.Base(words[0].text)
	args := words[1:]
	if it, ok := interpreterOf(name); ok {
		reads, inline := it.runsCode(args)
		return reads || inline
	}
	switch name {
	case "awk", "gawk", "mawk", "nawk":
		return slices.ContainsFunc(args, func(a word) bool { return !a.isPlain() || awkActs().MatchString(a.text) })
	case "sed", "gsed":
		return slices.ContainsFunc(args, func(a word) bool { return !a.isPlain() }) || !sedReplaces(args)
	case "xargs", "source", ".", "trap", "bind", "complete", "enable", "hash", "mapfile", "readarray", "shopt", "vim", "vi", "nvim", "emacs", "gdb", "set":
		return name != "source" && name != "." || len(args) == 0 || !args[0].isPlain()
	case "export", "ssh":
		return true
	}
	return slices.ContainsFunc(args, func(a word) bool {
		for _, flag := range []string{"--files-from", "--files0-from", "--from-file", "--pre", "--hostname-bin", "--compress-program", "--use-compress-program", "--to-command", "--checkpoint-action", "--rsh", "--config"} {
			if strings.HasPrefix(a.text, flag) {
				return true
			}
		}
		return a.text == "-T" && (name == "tar" || name == "bsdtar") || strings.HasPrefix(a.text, "-i@") || name == "curl" && (a.text == "-K") || strings.HasPrefix(a.text, "@") && a.glob == "" && name != "curl"
	})
}

// awkActs matches programs of awk that may read other files or run commands.
var awkActs = compileLater(`getline|system|\||>|@|ARG[VC]|^-f|^--|^-[il]`)

// sedScript matches a replacement without flags that run or write something, or a command that
// prints or deletes lines.
var sedScript = compileLater(`^(s([/|#,:])([^\\\n/|#,:]|\\[^\n])*[/|#,:]([^\\\n/|#,:]|\\[^\n])*[/|#,:][gIip0-9]*|([0-9]+|\$)?(,([0-9]+|\$))?[dpq])$`)

// sedReplaces reports whether a script of sed only replaces or prints lines.
func sedReplaces(args []word) bool {
	for _, a := range args {
		switch {
		case strings.HasPrefix(a.text, "-") && !slices.Contains([]string{"-n", "-E", "-r", "-i", "-e", "-s", "-z", "-u"}, a.text):
			return false
		case !strings.HasPrefix(a.text, "-"):
			return sedScript().MatchString(a.text)
		}
	}
	return true
}

// risksOf lists what the parts of a call that ask may do. A download in the same call as something
// that runs code counts as running code from the network.
// asking are the parts about which a person is asked, all are the parts of the call. The parts of
// one call are looked at together because a pipe or a file between them is not followed.
func risksOf(asking, all []need) (risks []string) {
	from := []string{}
	runs := false
	for _, n := range all {
		if host, ok := strings.CutPrefix(n.risk, "reaches the network ("); ok {
			from = append(from, strings.TrimSuffix(host, ")"))
		}
		runs = runs || n.kind == command && (n.stdin || runsFile(n))
	}
	for _, n := range asking {
		if n.risk != "" && !slices.Contains(risks, n.risk) {
			risks = append(risks, n.risk)
		}
	}
	if len(from) > 0 && runs && len(risks) > 0 {
		slices.Sort(from)
		risks = slices.DeleteFunc(risks, func(r string) bool { return r == inputRisk || strings.HasPrefix(r, "reaches the network (") })
		risks = append([]string{"runs code from the network (" + strings.Join(slices.Compact(from), ", ") + ")"}, risks...)
	}
	return risks
}

// runsFile reports whether a command runs a file by its path or by an interpreter, or
// what another command prints.
func runsFile(n need) bool {
	if len(n.words) == 0 {
		return false
	}
	name := n.words[0].text
	_, interprets := interpreterOf(name)
	return interprets || !n.words[0].isPlain() || strings.Contains(name, "/") || name == "source" || name == "." || name == "eval"
}
