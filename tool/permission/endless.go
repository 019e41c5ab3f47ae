package permission

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// A command that only reads may still work until its time limit, or fill the memory: these are the limits up to which
// it does so without a question.
const (
	longestSleep = 300     // seconds, of all waits of a text together
	mostLines    = 1e7     // that one command counts out
	widest       = 100_000 // characters to which a format fills up a value
)

// mayNeverEnd is why a command asks that only reads, and may do so for as long as it is left alone.
const mayNeverEnd = "may never end"

// sleepCheck allows a wait of at most five minutes, the sum of all arguments.
func sleepCheck(args []word) string {
	switch total, known := sleepTime(args); {
	case !known:
		return "waits for a time that is not known"
	case !(total <= longestSleep):
		return "waits longer than five minutes"
	}
	return ""
}

// sleepTime returns how many seconds a sleep takes, as far as its arguments are known. known is false for an argument
// that is not a time.
func sleepTime(args []word) (total float64, known bool) {
	for _, a := range args {
		most := 0.0
		for _, text := range knownTexts(a) {
			unit := 1.0
			for suffix, seconds := range map[string]float64{"s": 1, "m": 60, "h": 3600, "d": 86400} {
				if number, ok := strings.CutSuffix(text, suffix); ok {
					text = number
					unit = seconds
					break
				}
			}
			seconds, err := strconv.ParseFloat(text, 64)
			if err != nil && a.isPlain() {
				return 0, false
			}
			most = max(most, seconds*unit)
		}
		total += most
	}
	return total, true
}

// knownTexts returns the texts that a word may have, as far as they are known.
func knownTexts(w word) []string {
	if w.isPlain() {
		return []string{w.text}
	}
	return w.maybe
}

// seqCheck refuses to count out too many lines, or lines without an end.
func seqCheck(args []word) string {
	lines, why := seqLines(args)
	if why == "" && !(lines <= mostLines) {
		why = "prints millions of lines"
	}
	return why
}

// seqLines returns how many lines seq prints, as far as its arguments are known.
func seqLines(args []word) (lines float64, why string) {
	var numbers [][]float64
	for i := 0; i < len(args); i++ {
		texts := knownTexts(args[i])
		if len(texts) == 1 && strings.HasPrefix(texts[0], "-") && !isFloat(texts[0]) {
			if widthOf(texts[0]) > widest || i+1 < len(args) && widthOf(args[i+1].text) > widest {
				return 0, mayNeverEnd
			}
			if slices.Contains([]string{"-f", "-s", "-t", "--format", "--separator"}, texts[0]) {
				i++
			}
			continue
		}
		var values []float64
		for _, text := range texts {
			if n, err := strconv.ParseFloat(text, 64); err == nil || math.IsInf(n, 0) {
				values = append(values, n)
			}
		}
		numbers = append(numbers, values)
	}
	extreme := func(i int, pick func(a, b float64) float64, unknown float64) float64 {
		if i < 0 || i >= len(numbers) || len(numbers[i]) == 0 {
			return unknown
		}
		value := numbers[i][0]
		for _, n := range numbers[i] {
			value = pick(value, n)
		}
		return value
	}
	first := -1
	step := -1
	last := len(numbers) - 1
	if len(numbers) > 1 {
		first = 0
	}
	if len(numbers) > 2 {
		step = 1
	}
	absolute := func(a, b float64) float64 { return min(math.Abs(a), math.Abs(b)) }
	by := math.Abs(extreme(step, absolute, 1))
	if by == 0 || math.IsNaN(by) {
		return 0, mayNeverEnd
	}
	up := extreme(last, math.Max, 1) - extreme(first, math.Min, 1)
	down := extreme(first, math.Max, 1) - extreme(last, math.Min, 1)
	if step < 0 || extreme(step, math.Min, 1) > 0 {
		down = 0
	}
	if step >= 0 && extreme(step, math.Max, 1) < 0 {
		up = 0
	}
	if lines = math.Max(up, down)/by + 1; math.IsNaN(lines) {
		return 0, mayNeverEnd
	}
	return max(lines, 0), ""
}

func isFloat(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// widthOf returns the largest number in the conversions of a format, such as 80 in %80s.
func widthOf(format string) (most float64) {
	for _, m := range formatWidth().FindAllString(format, -1) {
		for _, digits := range strings.FieldsFunc(m, func(r rune) bool { return r < '0' || r > '9' }) {
			n, err := strconv.ParseFloat(digits, 64)
			if err == nil {
				most = max(most, n)
			}
		}
	}
	return most
}

// formatWidth matches the beginning of a conversion, up to its letter.
var formatWidth = compileLater(`%[-+ #0']*[0-9]*(\.[0-9]+)?`)

// fillsUp reports whether a format fills up a value to a length that no one reads, also by a number among the other
// arguments.
func fillsUp(format string, args []word) bool {
	if widthOf(format) > widest {
		return true
	}
	return starWidth().MatchString(format) && slices.ContainsFunc(args, func(a word) bool {
		return slices.ContainsFunc(knownTexts(a), func(text string) bool {
			n, err := strconv.ParseFloat(text, 64)
			return err == nil && math.Abs(n) > widest
		})
	})
}

// starWidth matches a conversion whose width or precision is an argument.
var starWidth = compileLater(`%[-+ #0']*[0-9]*\.?\*`)

// endlessFilter matches what makes a program of jq work for as long as it likes: a definition, which may call itself,
// and what repeats or counts.
var endlessFilter = compileLater(`(^|[^.$"\w])(def|repeat|while|until|infinite)\b|(^|[^.$"\w])recurse\s*\(`)

// longCount matches a number of at least eight digits, or with an exponent.
var longCount = compileLater(`[0-9]{8}|[0-9][eE]\+?[0-9]`)

// jqMayNeverEnd reports whether a program of jq may work without an end, or until the memory is full.
func jqMayNeverEnd(program string) bool {
	return endlessFilter().MatchString(program) || (strings.Contains(program, "range") || strings.Contains(program, "*") || strings.Contains(program, "limit")) && longCount().MatchString(program)
}

// countBraces returns how many words the braces in a word make of it. tooMany reports whether these are more than a
// text needs: the shell makes all of them before anything runs.
func countBraces(n *syntax.Word) (count int, tooMany bool) {
	parts := syntax.Word{Parts: slices.Clone(n.Parts)}
	if !syntax.SplitBraces(&parts) {
		return 1, false
	}
	for _, err := range expand.BracesSeq(nil, &parts) {
		if err != nil {
			return count, true
		}
		count++
	}
	return count, false
}

// isEndless reports whether only something inside a loop can end it, and nothing inside does.
// It looks for conditions that are the same each time, and takes any break, exit or return
// inside for an end. A loop that is not found is ended by the timeout of the command.
func isEndless(loop *syntax.WhileClause) bool {
	if len(loop.Cond) == 0 {
		return false
	}
	last := loop.Cond[len(loop.Cond)-1]
	same, value := isConstant(last)
	if !same || value != 0 && (value > 0) == loop.Until {
		return false
	}
	for _, stmt := range slices.Concat(loop.Cond, loop.Do) {
		for n := range syntax.Preorder(stmt) {
			if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 && slices.Contains([]string{"break", "exit", "return"}, call.Args[0].Lit()) {
				return false
			}
		}
	}
	return true
}

// successes are programs that have the same success each time, with arguments that the shell does not change.
var successes = []string{":", "true", "echo", "printf", "pwd", "sleep", "date", "seq", "whoami", "id", "uname", "arch", "nproc", "basename", "dirname"}

// isConstant reports whether a statement has the same outcome each time. value is 1 for success, -1 for failure, and 0
// where it is not calculated.
func isConstant(stmt *syntax.Stmt) (same bool, value int) {
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		if len(cmd.Args) == 0 {
			return false, 0
		}
		switch name := cmd.Args[0].Lit(); {
		case name == "false":
			same = true
			value = -1
		case slices.Contains(successes, name):
			same = true
			value = 1
		case name == "[" || name == "test":
			same = !slices.ContainsFunc(cmd.Args[1:], func(a *syntax.Word) bool {
				text, ok := constantText(a)
				return !ok || unaryTests().MatchString(text) && text != "-n" && text != "-z" || slices.Contains([]string{"-nt", "-ot", "-ef"}, text)
			})
		}
	case *syntax.TestClause:
		same = true
		for n := range syntax.Preorder(cmd) {
			switch n := n.(type) {
			case *syntax.UnaryTest:
				same = same && (n.Op == syntax.TsEmpStr || n.Op == syntax.TsNempStr || n.Op == syntax.TsNot)
			case *syntax.BinaryTest:
				same = same && n.Op != syntax.TsNewer && n.Op != syntax.TsOlder && n.Op != syntax.TsDevIno
			case *syntax.Word:
				_, ok := constantText(n)
				same = same && ok
			}
		}
	case *syntax.ArithmCmd:
		same = true // it asks unless it has only numbers
	case *syntax.BinaryCmd:
		left, _ := isConstant(cmd.X)
		same, value = isConstant(cmd.Y)
		switch {
		case cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll:
		default:
			same = same && left
			value = 0
		}
	case *syntax.Block:
		if len(cmd.Stmts) > 0 {
			same, value = isConstant(cmd.Stmts[len(cmd.Stmts)-1])
		}
	case *syntax.Subshell:
		if len(cmd.Stmts) > 0 {
			same, value = isConstant(cmd.Stmts[len(cmd.Stmts)-1])
		}
	}
	if stmt.Negated {
		value = -value
	}
	return same, value
}

// constantText returns the text of a word in which nothing is expanded.
func constantText(w *syntax.Word) (text string, ok bool) {
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			text += part.Value
		case *syntax.SglQuoted:
			text += part.Value
		case *syntax.DblQuoted:
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return "", false
				}
				text += lit.Value
			}
		default:
			return "", false
		}
	}
	return text, !strings.ContainsAny(text, "*?[") || text == "[" || text == "]"
}
