package permission

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A readOnlyRule says with which arguments a command only reads.
// The zero value is a command that reads its operands as files and has no flag that does more.
type readOnlyRule struct {
	text    bool     // its arguments are texts, not files
	skip    int      // how many operands come before the files, such as the pattern of grep
	skipped string   // letters of flags that replace those operands
	most    int      // with more operands than this it does more than read; 0: any number
	letters string   // flags of one letter with which it does more than read
	flags   []string // long flags with which it does more, without the dashes; abbreviations count too
	values  string   // letters of flags whose value, joined or the next word, is not a file
	valued  []string // long flags whose value may be the next word, without the dashes; abbreviations count too
	// flags whose value, joined or the next word, is a file that it reads, as letters and as long flags; also those
	// that take a value in only one of the systems
	inputs   []string
	anywhere bool // arguments that only the shell knows make no difference
	// check returns the reason why the command is not harmless with these arguments; nil: there is nothing else to
	// check.
	check func(args []word) string
}

// readers are the commands that run without asking: they read, and do nothing
// else with the flags that are not listed.
// A command is here only if its manual shows that the flags listed are all that can run a program,
// write a file or read a list of other files. Programs of macOS and Linux differ: a flag counts if
// it does more in one of them.
var readers = map[string]readOnlyRule{
	":": {text: true, anywhere: true}, "true": {text: true, anywhere: true}, "false": {text: true, anywhere: true},
	"echo": {text: true, anywhere: true}, "pwd": {text: true, anywhere: true},
	"basename": {text: true, anywhere: true}, "dirname": {text: true, anywhere: true},
	"seq": {text: true, check: seqCheck}, "sleep": {text: true, check: sleepCheck}, "tr": {text: true, anywhere: true},
	"exit": {text: true, anywhere: true}, "return": {text: true, anywhere: true},
	"break": {text: true, anywhere: true}, "continue": {text: true, anywhere: true}, "shift": {text: true, anywhere: true},
	"whoami": {text: true}, "id": {text: true}, "uname": {text: true}, "arch": {text: true}, "nproc": {text: true},
	"which": {text: true}, "type": {text: true}, "wait": {text: true, letters: "p"},
	"printf": {text: true, check: printfCheck},
	"test":   {text: true, check: testCheck}, "[": {text: true, check: testCheck},
	"date": {text: true, values: "d", valued: []string{"date"}, letters: "sfr", flags: []string{"set", "file", "reference"}, check: dateCheck},
	"set":  {text: true, check: setCheck}, "read": {text: true, check: readCheck},

	"ls": {inputs: []string{"I", "T", "w", "ignore", "hide", "tabsize", "width", "block-size"}, check: lsCheck}, "cat": {}, "head": {values: "nc", valued: []string{"lines", "bytes"}}, "tail": {values: "ncs", valued: []string{"lines", "bytes", "sleep-interval", "pid"}, letters: "fF", flags: []string{"follow", "retry"}}, "nl": {}, "tac": {}, "rev": {}, "cut": {values: "bcdf", valued: []string{"bytes", "characters", "delimiter", "fields", "output-delimiter"}}, "paste": {values: "d"}, "column": {values: "s"},
	"wc": {flags: []string{"files0-from"}}, "fold": {values: "w", valued: []string{"width"}}, "expand": {values: "t"}, "unexpand": {values: "t"}, "comm": {}, "cmp": {}, "stat": {values: "c", valued: []string{"format", "printf"}},
	"diff": {values: "U", valued: []string{"unified", "context", "label", "exclude", "width"}, letters: "l", flags: []string{"paginate"}}, "du": {values: "dBt", inputs: []string{"X", "exclude-from"}, valued: []string{"max-depth", "block-size", "threshold", "exclude"}, letters: "DHL", flags: []string{"files0-from", "dereference", "dereference-args"}}, "df": {},
	"file": {letters: "Cmf", flags: []string{"compile", "magic-file", "files-from"}},
	"tree": {values: "LPI", letters: "olR", flags: []string{"output"}}, "realpath": {}, "readlink": {},
	"md5sum": {letters: "c", flags: []string{"check"}}, "sha1sum": {letters: "c", flags: []string{"check"}},
	"sha256sum": {letters: "c", flags: []string{"check"}}, "sha512sum": {letters: "c", flags: []string{"check"}},
	"cksum": {letters: "c", flags: []string{"check"}}, "od": {values: "AjNtw"}, "hexdump": {values: "ens"},
	"xxd": {most: 1, values: "clgsoR", letters: "r", flags: []string{"revert"}}, "uniq": {most: 1, values: "fsw", valued: []string{"skip-fields", "skip-chars", "check-chars"}},
	"sort": {values: "ktS", valued: []string{"key", "field-separator", "buffer-size", "parallel", "batch-size"}, letters: "oT", flags: []string{"output", "compress-program", "temporary-directory", "files0-from"}},
	"grep": grep, "egrep": grep, "fgrep": grep,
	"rg": {skip: 1, skipped: "ef", values: "eABCgjmMrtTEd", inputs: []string{"f", "file", "ignore-file"}, valued: ripgrepValues, letters: "Lz",
		flags: []string{"pre", "pre-glob", "follow", "hostname-bin", "search-zip"}},
	"jq":   {skip: 1, letters: "fL", flags: []string{"from-file", "library-path"}, check: jqCheck},
	"sed":  {skip: 1, check: sedCheck},
	"git":  {check: gitCheck},
	"find": {check: findCheck},
}

// grep is the rule of the programs that search for a pattern, which is their first operand.
var grep = readOnlyRule{skip: 1, skipped: "ef", values: "emABCdD", inputs: []string{"f", "file", "exclude-from"}, valued: []string{"regexp", "max-count", "after-context", "before-context", "context", "label", "binary-files", "directories", "devices",
	"exclude", "exclude-dir", "include", "include-dir", "group-separator"}, letters: "R", flags: []string{"dereference-recursive"}}

// ripgrepValues are the long flags of rg whose value may be the next word and is not a file that it reads.
var ripgrepValues = []string{"after-context", "before-context", "color", "colors", "context", "context-separator", "dfa-size-limit", "encoding", "engine", "field-context-separator", "field-match-separator",
	"generate", "glob", "hyperlink-format", "iglob", "max-columns", "max-count", "max-depth", "maxdepth", "max-filesize", "path-separator", "regex-size-limit", "regexp", "replace", "sort", "sortr", "threads", "type",
	"type-add", "type-clear", "type-not"}

// versions are programs that may be asked for their version. Programs of languages are not among
// them: a launcher that replaces them may read files of the workspace.
var versions = []string{"bash", "gcc", "git", "make"}

// unknownCommand is the reason to ask about a command of which raddle does not know what it does.
const unknownCommand = "is not a command that raddle knows to only read"

// judgeCommand returns the verdict on a command with a plain name if no rule covers it, and the
// reason.
// The files that the command reads are needs of their own: a command that only reads may still ask
// because of a file outside of the workspace.
func (s *shellAnalyzer) judgeCommand(words []word) (verdict Verdict, why string) {
	name := words[0].text
	args := words[1:]
	if slices.Contains(versions, name) && len(args) == 1 && args[0].isPlain() && args[0].text == "--version" {
		return Allow, ""
	}
	r, ok := readers[name]
	if !ok {
		return Ask, unknownCommand
	}
	if r.anywhere {
		return Allow, ""
	}
	if why := r.findViolation(args); why != "" {
		return Ask, why
	}
	if name == "sleep" {
		seconds, _ := sleepTime(args)
		if *s.slept += seconds * s.times; *s.slept > longestSleep {
			return Ask, "waits longer than five minutes, together with the waits before it"
		}
	}
	if name == "git" {
		if why := s.judgeRepositories(args); why != "" {
			return Ask, why
		}
	}
	if s.mayBecomeFlag(args) {
		return Ask, "has a pattern that may match a file whose name begins with -"
	}
	return Allow, ""
}

// findViolation returns the reason why the command does more than read.
// It is empty if the command only reads. An argument that only the shell knows is refused, unless
// the check of the rule looks at it: it might turn into a flag.
func (r readOnlyRule) findViolation(args []word) string {
	operands := 0
	ended := false
	isValue := notValue
	for i, a := range args {
		value := isValue
		isValue = notValue
		if (a.vague || a.splits) && r.check == nil {
			return "has an argument that is known only when it runs"
		}
		switch {
		case value != notValue && !strings.HasPrefix(a.text, "-") && a.isPlain():
		case ended || !strings.HasPrefix(a.text, "-") || a.text == "-":
			operands++
		case a.text == "--":
			ended = true
		case r.forbidsFlag(a.text):
			return "does more than read with " + args[i].text
		default:
			_, isValue = r.flagValues(a.text)
		}
	}
	if r.most > 0 && operands > r.most {
		return "writes a file with so many arguments"
	}
	if r.check != nil {
		return r.check(args)
	}
	return ""
}

// forbidsFlag reports whether a flag is one with which the command does more than read.
// Of a long flag any abbreviation counts, as programs accept it. A word such as -rf counts if one
// of its letters does.
func (r readOnlyRule) forbidsFlag(flag string) bool {
	if long, ok := strings.CutPrefix(flag, "--"); ok {
		long, _, _ = strings.Cut(long, "=")
		return long != "" && slices.ContainsFunc(r.flags, func(f string) bool { return strings.HasPrefix(f, long) })
	}
	return strings.ContainsAny(flag[1:], r.letters) || slices.Contains(r.flags, flag[1:])
}

// fileArguments returns the arguments that may be files: operands, and values of flags; named reports whether an
// operand that is surely one names a file or directory. An argument that turns out not to be a file does no harm: as a
// relative name, it lies in the workspace. The first pass finds out whether the operands before the files, such as the
// pattern of grep, are given by a flag instead: then all operands are files.
func (r readOnlyRule) fileArguments(args []word) (files []word, named bool) {
	skip := r.skip
	for _, a := range args {
		if a.text == "--" {
			break
		}
		if r.replacesOperand(a.text) {
			skip = 0 // the flag may be in any position
		}
	}
	sure := skip
	ended := false
	isValue := notValue
	for _, a := range args {
		value := isValue
		isValue = notValue
		if a.vague || a.splits {
			files = append(files, a)
			if sure--; sure < 0 && !a.splits {
				named = true
			}
			continue
		}
		if ended || !strings.HasPrefix(a.text, "-") || a.text == "-" {
			if value == fileValue && !ended {
				files = append(files, a)
			}
			if value != notValue && !ended {
				continue
			}
			skip--
			if sure--; sure < 0 {
				named = true
			}
			if skip < 0 && a.text != "" {
				files = append(files, a)
			}
			continue
		}
		if a.text == "--" {
			ended = true
			continue
		}
		var tails []string
		tails, isValue = r.flagValues(a.text)
		for _, tail := range tails {
			files = append(files, literalWord(tail))
		}
	}
	return files, named
}

// replacesOperand reports whether a flag gives what would be the first operand, such as grep -e: as a long flag, or as
// a letter of a short one that is not the value of another letter.
func (r readOnlyRule) replacesOperand(flag string) bool {
	if !strings.HasPrefix(flag, "-") || strings.HasPrefix(flag, "--") {
		return strings.HasPrefix(flag, "--") && replacesPattern(flag)
	}
	for _, c := range flag[1:] {
		if strings.ContainsRune(r.skipped, c) {
			return true
		}
		if strings.ContainsRune(r.values, c) {
			return false
		}
	}
	return false
}

// A valueKind says what the word behind a flag is.
type valueKind int

const (
	notValue   valueKind = iota // an argument of its own
	otherValue                  // a value that is not a file
	fileValue                   // a file that is read
)

// flagValues returns what of a flag may be the name of a file: the text behind =, or what follows any letter of joined
// short flags up to one whose value is not a file. next says what the next word is.
func (r readOnlyRule) flagValues(flag string) (tails []string, next valueKind) {
	if long, ok := strings.CutPrefix(flag, "--"); ok {
		name, value, joined := strings.Cut(long, "=")
		begins := func(f string) bool { return len(f) > 1 && strings.HasPrefix(f, name) }
		switch {
		case value != "":
			return []string{value}, notValue
		case joined:
		case slices.ContainsFunc(r.inputs, begins):
			return nil, fileValue
		case slices.ContainsFunc(r.valued, begins):
			return nil, otherValue
		}
		return nil, notValue
	}
	for i := 1; i < len(flag); i++ {
		last := i == len(flag)-1
		switch {
		case strings.IndexByte(r.values, flag[i]) >= 0:
			if last {
				next = otherValue
			}
			return tails, next
		case last && slices.Contains(r.inputs, flag[i:]):
			next = fileValue
		case !last:
			tails = append(tails, strings.TrimPrefix(flag[i+1:], "="))
		}
	}
	return tails, next
}

// replacesPattern reports whether a long flag replaces the pattern: --regexp, --file, --files, also
// abbreviated.
func replacesPattern(flag string) bool {
	name, _, _ := strings.Cut(flag, "=")
	return strings.HasPrefix("--regexp", name) || strings.HasPrefix("--files", name)
}

// mayBecomeFlag reports whether a pattern of files may turn into a flag.
// A pattern that begins with a wildcard matches a file named "-delete", which the program then
// takes for a flag. That is no problem while no such file exists.
func (s *shellAnalyzer) mayBecomeFlag(args []word) bool {
	if !slices.ContainsFunc(args, func(a word) bool { return a.glob != "" && strings.ContainsAny(a.glob[:1], "*?[") }) {
		return false
	}
	for _, dir := range s.dirs {
		if found, err := filepath.Glob(filepath.Join(escapeGlob(dir), "-*")); err != nil || len(found) > 0 {
			return true
		}
	}
	return false
}

// lsCheck keeps ls from going through links that lead out of the workspace.
func lsCheck(args []word) string {
	if !allPlain(args) {
		return unknownArgument
	}
	if hasFlag(args, "R", "recursive") && hasFlag(args, "LH", "dereference") {
		return "follows links below a directory"
	}
	return ""
}

// unknownArgument is the reason to ask about an argument that might turn into a flag or another
// operand.
const unknownArgument = "has an argument that is known only when it runs"

// allPlain reports whether the text of each argument is known, except for patterns of files.
func allPlain(args []word) bool {
	return !slices.ContainsFunc(args, func(a word) bool { return a.vague || a.splits })
}

// printfSets matches a format that sets a variable.
var printfSets = compileLater(`%[^%a-zA-Z]*[hlLjzt]*n`)

// printfCheck refuses formats and flags of printf that set a variable, or fill up what they print without a limit.
func printfCheck(args []word) string {
	if len(args) == 0 || !args[0].isPlain() {
		return unknownArgument
	}
	if format := args[0].text; strings.HasPrefix(format, "-") || printfSets().MatchString(format) {
		return "may set a variable"
	}
	if fillsUp(args[0].text, args[1:]) {
		return "prints more than anyone reads"
	}
	return ""
}

// dateCheck allows flags and formats of date: any other argument sets the clock.
func dateCheck(args []word) string {
	for i, a := range args {
		if a.vague || a.splits {
			return unknownArgument
		}
		if i > 0 && (args[i-1].text == "-d" || args[i-1].text == "-ud" || args[i-1].text == "--date") {
			continue // GNU date reads a time; that of macOS takes daylight saving, which no one sets
		}
		if !strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "+") {
			return "may set the clock"
		}
	}
	return ""
}

var (
	unaryTests  = compileLater(`^-[abcdefghknprstuwxzGLNOS]$`)
	binaryTests = compileLater(`^(=|==|!=|<|>|-eq|-ne|-lt|-le|-gt|-ge|-nt|-ot|-ef)$`)
)

// testCheck refuses test -v, whose operand may run a command. An argument that only the shell knows
// must be in a position where it cannot be an operator.
func testCheck(args []word) string {
	for _, a := range args {
		if a.text == "-v" || a.text == "-R" {
			return "may run commands in a subscript"
		}
	}
	if n := len(args); n > 0 && args[n-1].isPlain() && args[n-1].text == "]" {
		args = args[:n-1]
	}
	if len(args) > 0 && args[0].isPlain() && args[0].text == "!" {
		args = args[1:]
	}
	if allPlain(args) {
		return ""
	}
	certain := func(i int, re *regexp.Regexp) bool { return args[i].isPlain() && re.MatchString(args[i].text) }
	one := func(i int) bool { return !args[i].splits }
	switch {
	case len(args) == 1 && one(0), len(args) == 2 && certain(0, unaryTests()) && one(1),
		len(args) == 3 && certain(1, binaryTests()) && one(0) && one(2):
		return ""
	}
	return unknownArgument
}

var (
	setFlags   = compileLater(`^[-+][efu]+$`)
	setOption  = compileLater(`^[-+][efu]*o$`)
	setOptions = []string{"pipefail", "errexit", "nounset", "noglob"}
)

// setCheck allows the options of set that make a script stricter. All others change how the shell
// reads the text that follows, which the analysis does not expect.
func setCheck(args []word) string {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.isPlain():
			return unknownArgument
		case setFlags().MatchString(a.text):
		case setOption().MatchString(a.text) && i+1 < len(args) && args[i+1].isPlain() && slices.Contains(setOptions, args[i+1].text):
			i++
		default:
			return "changes how the shell works"
		}
	}
	return ""
}

// readCheck allows read to set variables that no other program uses.
func readCheck(args []word) string {
	for _, a := range args {
		if !a.isPlain() || a.text != "-r" && !isOwnVariable(a.text) {
			return "may set a variable that other programs use"
		}
	}
	return ""
}

// jqCheck refuses programs of jq that may load a module from a file, or work without an end.
func jqCheck(args []word) string {
	for _, a := range args {
		if a.vague || a.splits {
			return unknownArgument
		}
		if strings.Contains(a.text, "import") || strings.Contains(a.text, "include") {
			return "may read other files"
		}
		if jqMayNeverEnd(a.text) {
			return mayNeverEnd
		}
	}
	return ""
}

// sedPrints matches a script that only prints lines by number.
var sedPrints = compileLater(`^([0-9]+|\$)(,([0-9]+|\$))?[pdq](;([0-9]+|\$)(,([0-9]+|\$))?[pdq])*$`)

// sedCheck allows sed to print lines by their numbers. Its commands r, w and e read, write and run
// files, so every other script asks.
func sedCheck(args []word) string {
	if !allPlain(args) {
		return unknownArgument
	}
	script := false
	for _, a := range args {
		switch {
		case script:
			if strings.HasPrefix(a.text, "-") {
				return "may change files"
			}
		case a.text == "-n" || a.text == "-E" || a.text == "-r" || a.text == "--quiet":
		case sedPrints().MatchString(a.text):
			script = true
		default:
			return "has a script that may change files or run commands"
		}
	}
	return ""
}
