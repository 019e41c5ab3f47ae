package toolbox

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"raddle.dev/flow"
	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/proc"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/storage/config"
	"raddle.dev/tool/declare"
)

// syntaxTimeout limits how long bash may take to read one file.
const syntaxTimeout = 10 * time.Second

// CheckSyntax returns the syntax errors of an agent's bash files: its tools, and the scripts of its nodes. bash reads
// the files (bash -n) and runs nothing of them. Without bash there are no findings.
func (s *Shared) CheckSyntax(ctx context.Context, a *flow.Agent) (found []strictyaml.Finding) {
	var files []string
	for _, file := range a.ScriptFiles() {
		if !filepath.IsAbs(file) {
			file = filepath.Join(a.Dir, file)
		}
		if strings.EqualFold(filepath.Ext(file), ".sh") && config.IsFile(file) && !slices.Contains(files, file) {
			files = append(files, file)
			found = append(found, s.checkBash(ctx, file)...)
		}
	}
	return found
}

// syntaxError matches a line in which bash says what is wrong and where.
var syntaxError = pattern.CompileLater(`(?m)^[^\n]*?: line (\d+): ([^\n]+)$`)

// nearToken matches the word at which bash stopped.
var nearToken = pattern.CompileLater("(?:near unexpected token|looking for matching|near) [`'](.+)'")

// checkBash returns the first syntax error of a bash file.
func (s *Shared) checkBash(ctx context.Context, file string) []strictyaml.Finding {
	env := []string{"LC_ALL=C", "PATH=" + environ.Environ(s.WorkEnv()).Get("PATH")} // no BASH_ENV, whose file bash would run
	res, err := proc.Run(ctx, proc.Command{
		Path:    "bash",
		Args:    []string{"--noprofile", "--norc", "-n", file},
		Env:     env,
		Dir:     filepath.Dir(file),
		Timeout: syntaxTimeout,
	})
	m := syntaxError().FindSubmatch(res.Stderr)
	if err == nil || m == nil {
		return nil
	}
	line, _ := strconv.Atoi(string(m[1]))
	line = min(line, lastLine(file)) // bash counts the end of the file as a line
	f := strictyaml.Finding{
		Severity: strictyaml.SeverityError,
		Class:    strictyaml.ClassValidate,
		Code:     "bash-syntax",
		Message:  "bash: " + string(m[2]),
		Hint:     "bash -n checks it without running it",
		Pos:      strictyaml.Pos{File: file, Line: line, Col: 1},
	}
	if token := nearToken().FindSubmatch(m[2]); token != nil {
		f.Pos.Col = findColumn(file, line, string(token[1]))
	}
	return []strictyaml.Finding{f}
}

// lastLine returns the number of the last line of a file that is not blank.
func lastLine(file string) int {
	text, err := plainfile.Read(file, largestScript)
	if err != nil {
		return 1
	}
	return 1 + bytes.Count(bytes.TrimRight(text, " \t\r\n"), []byte("\n"))
}

// findColumn returns the column of a word in a line of a file, 1 if it is not there.
func findColumn(file string, line int, word string) int {
	text, err := plainfile.Read(file, largestScript)
	if err != nil || line < 1 || word == "" {
		return 1
	}
	lines := bytes.Split(text, []byte("\n"))
	if line > len(lines) {
		return 1
	}
	before, _, found := strings.Cut(string(lines[line-1]), word)
	if !found {
		return 1
	}
	return 1 + len([]rune(before))
}

// taggedWord matches the word that a problem of a declaration is about.
var taggedWord = pattern.CompileLater(`@[\w-]+|<[A-Z]+>`)

// newScriptProblem returns a problem of a file of tools at its place in the file.
func newScriptProblem(p declare.Problem) flow.ToolProblem {
	at := strictyaml.Pos{File: p.File, Line: p.Line, Col: 1}
	if word := taggedWord().FindString(p.Text); word != "" && p.Line > 0 {
		at.Col = findColumn(p.File, p.Line, word)
	}
	return flow.ToolProblem{Text: p.Text, Pos: at}
}
