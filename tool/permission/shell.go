package permission

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	longestShell = 16 << 10 // bytes of a shell text; more is not looked into
	deepestShell = 6        // levels of shells in shells
	maxDirs      = 16       // directories that a text may work in
)

// A shellAnalyzer takes a shell text apart. Everything that it finds becomes a need; a part that it
// does not understand becomes a need that asks.
// Each text is read as bash reads it, and also as POSIX says if another shell may run it: where
// they differ, the needs of both count.
//
// dirs grows with each cd, and every relative name means a file in each of these directories.
// Allowing a command means that it is allowed in all of them.
type shellAnalyzer struct {
	area  area
	home  string
	dirs  []string // where the commands that follow may work
	depth int
	posix bool // it may be a shell that is not bash
	lost  bool // other directories are possible, but unknown: relative names may be any file
	needs []need

	text   string            // what is analyzed
	values map[string]values // what the text gives to variables
	found  []protectedWord   // protected places that reach the command from outside its words

	looks *repositoryLooks // what is known about the repositories of the call
	// there are rules about files or hosts that deny or ask: it is useful to guess what commands may reach
	watched bool

	slept     *float64        // seconds that all sleeps so far take
	times     float64         // how often what is looked at runs, as far as it is known
	repeats   int             // loops and functions around what is looked at
	functions map[string]bool // declared on every path to the current node
	declares  bool            // there is a function anywhere
	reading   bool            // the command at hand does not read what another one prints
	wild      bool            // a text that is not a pattern of files in its place would be one in another place
}

// A shellWalk walks through the syntax of one text, and gives its commands to the analyzer.
type shellWalk struct {
	*shellAnalyzer

	source string
	inside int                       // substitutions around what is looked at
	piped  map[*syntax.CallExpr]bool // commands that read what another command prints
	loops  []float64                 // how often the bodies of the for loops around what is looked at run
	// text that the shell takes as it is, or that the parser has taken apart completely
	texts map[*syntax.Lit]bool
}

// analyzeText analyzes a text.
// Texts that are too long, and characters that shells do not agree about, are not analyzed: the
// text as a whole asks.
func (s *shellAnalyzer) analyzeText(text string) {
	s.text = text
	if len(text) > longestShell {
		s.addUncertain(text[:80]+" ...", "is too long to be looked into")
		return
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == '\uFFFD' }); i >= 0 {
		s.addUncertain(text, "holds a character that shells read in different ways")
		return
	}
	before := *s.slept
	s.analyzeAs(text, syntax.LangBash)
	if s.posix {
		bash := *s.slept
		*s.slept = before // only one of the two shells waits
		s.analyzeAs(text, syntax.LangPOSIX)
		*s.slept = max(bash, *s.slept)
	}
}

// analyzeAs analyzes a text as one kind of shell reads it.
// A function counts as declared only after its declaration at the top of the text, where it is
// certain that the shell has reached it.
func (s *shellAnalyzer) analyzeAs(text string, lang syntax.LangVariant) {
	file, err := parseShell(text, lang)
	if err != nil {
		s.addUncertain(text, fmt.Sprintf("cannot be understood as shell (%v)", err))
		return
	}
	w := &shellWalk{shellAnalyzer: s, source: text, piped: map[*syntax.CallExpr]bool{}, texts: map[*syntax.Lit]bool{}}
	s.functions = map[string]bool{}
	s.declares = slices.ContainsFunc(slices.Collect(syntax.Preorder(file)), func(n syntax.Node) bool {
		_, ok := n.(*syntax.FuncDecl)
		return ok
	})
	s.wild = slices.ContainsFunc(slices.Collect(syntax.Preorder(file)), w.holdsWildcard)
	for _, stmt := range file.Stmts {
		w.walkNodes(stmt)
		if f, ok := stmt.Cmd.(*syntax.FuncDecl); ok && !stmt.Background && len(stmt.Redirs) == 0 && f.Name != nil {
			s.functions[f.Name.Value] = true
		}
	}
}

// holdsWildcard reports whether a node is a text with a wildcard that the shell takes as
// it is: quoted, or the value of a variable.
func (s *shellWalk) holdsWildcard(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.SglQuoted:
		return quotedWildcard().MatchString(s.sourceOf(n))
	case *syntax.DblQuoted:
		return matchesOutside(s.sourceOf(n))
	case *syntax.Assign:
		return n.Value != nil && matchesOutside(s.sourceOf(n.Value))
	case *syntax.Redirect:
		return n.Hdoc != nil && matchesOutside(s.sourceOf(n.Hdoc))
	}
	return false
}

// matchesOutside reports whether a source in which the shell expands variables has a wildcard in a path that may lead
// out of the workspace.
func matchesOutside(source string) bool {
	return quotedWildcard().MatchString(source) || expandedWildcard().MatchString(source)
}

// parseShell reads a text. A panic of the parser is returned as an error.
// A text from a model may be anything, and a failure must not end the process.
func parseShell(text string, lang syntax.LangVariant) (file *syntax.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the parser failed: %v", r)
		}
	}()
	return syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(text), "")
}

// analyzeNested analyzes a text that a command of this text runs in a shell.
// The directory that the inner text changes to stays possible for the commands after it, although
// an inner shell does not change that of the outer one: eval does.
func (s *shellAnalyzer) analyzeNested(text string, posix bool) {
	if s.depth >= deepestShell {
		s.addUncertain(text, "is a shell in too many shells")
		return
	}
	inner := shellAnalyzer{area: s.area, home: s.home, dirs: s.dirs, depth: s.depth + 1, posix: posix, lost: s.lost, repeats: s.repeats, slept: s.slept, times: s.times, watched: s.watched, looks: s.looks,
		values: s.values, found: s.found}
	inner.analyzeText(text)
	s.needs = append(s.needs, inner.needs...)
	s.dirs = inner.dirs
	s.lost = inner.lost
}

// addUncertain adds a need that asks about a part of the text that is not understood.
func (s *shellAnalyzer) addUncertain(text, why string) {
	s.addCommand(uncertainNeed(text, why))
}

// sourceOf returns the source of a part of the text.
// It is what a person sees in a question about the part.
func (s *shellWalk) sourceOf(n syntax.Node) string {
	from := int(n.Pos().Offset())
	to := int(n.End().Offset())
	if from < 0 || to > len(s.source) || from >= to {
		return "a part of the command"
	}
	return s.source[from:to]
}

// resolveWord returns what is known about a word of the syntax.
func (s *shellWalk) resolveWord(n *syntax.Word) word {
	w := parseWord(n, s.sourceOf(n), s.home)
	if w.vague {
		var all bool
		w.maybe, all = s.possibleTexts(n)
		w.more = !all
	}
	return w
}

// walkNodes visits everything below a node, in the order of the text.
func (s *shellWalk) walkNodes(n syntax.Node) {
	var around []syntax.Node
	syntax.Walk(n, func(n syntax.Node) bool {
		if n == nil {
			s.countEnclosing(around[len(around)-1], -1)
			around = around[:len(around)-1]
			return true
		}
		around = append(around, n)
		s.countEnclosing(n, 1)
		s.visitNode(n)
		return true
	})
}

// countEnclosing counts the constructs around the nodes below: those that run the nodes more than
// once or later, and those that put the nodes' output into a text.
// by is 1 before the nodes below and -1 after them.
func (s *shellWalk) countEnclosing(n syntax.Node, by int) {
	switch n := n.(type) {
	case *syntax.ForClause:
		s.repeats += by
		if by > 0 {
			s.loops = append(s.loops, s.countItems(n))
		}
		last := len(s.loops) - 1
		if s.times *= math.Pow(s.loops[last], float64(by)); by < 0 {
			s.loops = s.loops[:last]
		}
	case *syntax.WhileClause, *syntax.FuncDecl:
		s.repeats += by
	case *syntax.CmdSubst, *syntax.ProcSubst:
		s.inside += by
	}
}

// countItems returns how often the body of a for loop runs, as far as the text says so: at least once.
func (s *shellWalk) countItems(loop *syntax.ForClause) (times float64) {
	iter, ok := loop.Loop.(*syntax.WordIter)
	if !ok {
		return 1
	}
	for _, item := range iter.Items {
		made, _ := countBraces(item)
		count := float64(max(1, made, len(s.resolveWord(item).maybe)))
		for n := range syntax.Preorder(item) {
			call, ok := n.(*syntax.CallExpr)
			if !ok || len(call.Args) == 0 || call.Args[0].Lit() != "seq" {
				continue
			}
			var args []word
			for _, a := range call.Args[1:] {
				args = append(args, s.resolveWord(a))
			}
			lines, _ := seqLines(args)
			count = math.Max(count, lines)
		}
		times += count
	}
	return math.Max(1, times)
}

// visitNode analyzes one node, without the nodes below it.
// Every construct of the language is either harmless by itself, because the nodes below it are
// visited, or it adds a need. Constructs that calculate ask: bash runs commands in the subscripts
// of variables.
func (s *shellWalk) visitNode(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.CallExpr:
		s.visitCall(n)
	case *syntax.Redirect:
		s.visitRedirect(n)
	case *syntax.DeclClause:
		s.checkDeclaration(n)
	case *syntax.WordIter:
		s.checkAssignment(n.Name.Value, n)
		for _, item := range n.Items {
			s.recordValue(n.Name.Value, item)
			s.addListing(s.resolveWord(item))
		}
	case *syntax.BinaryCmd:
		if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
			for inner := range syntax.Preorder(n.Y) {
				if call, ok := inner.(*syntax.CallExpr); ok {
					s.piped[call] = true
				}
			}
		}
	case *syntax.WhileClause:
		if isEndless(n) {
			s.addUncertain(s.sourceOf(n), "never ends by itself")
		}
	case *syntax.Word:
		if _, tooMany := countBraces(n); tooMany {
			s.addUncertain(s.sourceOf(n), "becomes too many words")
		}
	case *syntax.DblQuoted:
		s.markInert(n.Parts)
	case *syntax.CmdSubst:
		// The shell takes backslashes out before it reads what is between backquotes.
		if n.Backquotes && strings.Contains(s.sourceOf(n), `\`) {
			s.addUncertain(s.sourceOf(n), "has backslashes between backquotes, which are hard to read: write $(...)")
		}
	case *syntax.FuncDecl:
		s.checkFunction(n)
	case *syntax.Lit:
		if !s.texts[n] && unquotedSubstitution(n.Value) {
			s.addUncertain(n.Value, "may be run by the shell")
		}
	case *syntax.ParamExp:
		s.checkParameter(n)
	case *syntax.ArithmExp:
		s.checkArithmetic(n.X, n)
	case *syntax.ArithmCmd:
		s.checkArithmetic(n.X, n)
	case *syntax.CStyleLoop:
		s.addUncertain(s.sourceOf(n), "calculates with variables, which may run commands")
	case *syntax.LetClause, *syntax.CoprocClause, *syntax.ExtGlob, *syntax.TestDecl:
		s.addUncertain(s.sourceOf(n), "cannot be known before it runs")
	case *syntax.ArrayExpr:
		s.addUncertain(s.sourceOf(n), "is an array, whose subscripts may run commands")
	case *syntax.UnaryTest:
		if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
			s.addUncertain(s.sourceOf(n), "may run commands in a subscript")
		}
		if x, ok := n.X.(*syntax.Word); ok && n.Op >= syntax.TsExists && n.Op <= syntax.TsNoEmpty {
			s.addExistence(s.resolveWord(x))
		}
	case *syntax.BinaryTest:
		if n.Op >= syntax.TsEql && n.Op <= syntax.TsGtr {
			s.checkNumber(n.X, n)
			s.checkNumber(n.Y, n)
		}
	}
}

// checkArithmetic accepts only numbers: the shell also evaluates the value of a variable, which may
// hold a command.
func (s *shellWalk) checkArithmetic(x syntax.ArithmExpr, whole syntax.Node) {
	for n := range syntax.Preorder(x) {
		if w, ok := n.(*syntax.Word); ok && !isNumber(w) {
			s.addUncertain(s.sourceOf(whole), "calculates with variables, which may run commands")
			return
		}
	}
}

// checkNumber accepts only a number as an operand of a comparison, as checkArithmetic does.
func (s *shellWalk) checkNumber(x syntax.TestExpr, whole syntax.Node) {
	if w, ok := x.(*syntax.Word); !ok || !isNumber(w) {
		s.addUncertain(s.sourceOf(whole), "calculates with variables, which may run commands")
	}
}

// isNumber reports whether a word is written in digits alone.
func isNumber(w *syntax.Word) bool {
	lit := w.Lit()
	return lit != "" && strings.Trim(lit, "0123456789") == ""
}

// checkParameter checks an expansion such as ${name:-text}. Expansions that name other variables,
// assign a value or have an operator of bash alone ask; the text behind an operator is visited by
// itself.
func (s *shellWalk) checkParameter(n *syntax.ParamExp) {
	const why = "is an expansion that may run commands or change variables"
	switch {
	case n.Excl, n.Index != nil, n.NestedParam != nil, n.Flags != nil, n.Width, n.Names != 0:
		s.addUncertain(s.sourceOf(n), why)
	case n.Slice != nil:
		for _, x := range []syntax.ArithmExpr{n.Slice.Offset, n.Slice.Length} {
			if x != nil {
				s.checkArithmetic(x, n)
			}
		}
	case n.Exp != nil:
		switch n.Exp.Op {
		case syntax.OtherParamOps, syntax.AssignUnset, syntax.AssignUnsetOrNull:
			s.addUncertain(s.sourceOf(n), why)
		}
	}
}

// checkAssignment checks the assignment of a value to a name.
func (s *shellWalk) checkAssignment(name string, n syntax.Node) {
	if !isOwnVariable(name) {
		s.addUncertain(s.sourceOf(n), "changes a variable that other programs may use")
	}
}

// isOwnVariable reports whether a variable matters to this text alone: names in
// capitals are the system's.
func isOwnVariable(name string) bool {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || strings.HasSuffix(name, "_proxy") {
		return false
	}
	return name != "histchars" && name != "auto_resume"
}

// checkDeclaration checks export, declare, local and similar commands.
func (s *shellWalk) checkDeclaration(n *syntax.DeclClause) {
	switch n.Variant.Value {
	case "declare", "local", "readonly", "typeset":
		for _, a := range n.Args {
			if a.Name == nil || a.Index != nil {
				s.addUncertain(s.sourceOf(n), "changes variables in a way that cannot be known")
				return
			}
			s.checkAssignment(a.Name.Value, n)
			s.recordValue(a.Name.Value, a.Value)
		}
	default:
		s.addUncertain(s.sourceOf(n), "changes the surroundings of other programs")
	}
}

// visitCall analyzes a simple command, or assignments without a command.
// Assignments without a command change the variables of the text itself, and assignments before a
// command those of that command.
func (s *shellWalk) visitCall(n *syntax.CallExpr) {
	var env []word
	for _, a := range n.Assigns {
		if a.Index != nil {
			s.addUncertain(s.sourceOf(a), "is an array, whose subscripts may run commands")
		}
		value := word{}
		if a.Value != nil {
			value = s.resolveWord(a.Value)
			s.recordValue(a.Name.Value, a.Value)
		}
		value.text = a.Name.Value + "=" + value.text
		env = append(env, value)
		if len(n.Args) == 0 {
			s.checkAssignment(a.Name.Value, a)
		}
	}
	if len(n.Args) == 0 {
		return
	}
	words := make([]word, len(n.Args))
	for i, a := range n.Args {
		words[i] = s.resolveWord(a)
	}
	s.reading = !s.piped[n]
	s.analyzeCommand(env, words)
}

// visitRedirect analyzes a redirection: a file that is opened, or a text that becomes the input.
// A redirection to a number is a copy of an open file, and touches none. Operators that are not
// listed write.
func (s *shellWalk) visitRedirect(n *syntax.Redirect) {
	if n.N != nil && strings.HasPrefix(n.N.Value, "{") {
		s.checkAssignment(strings.Trim(n.N.Value, "{}"), n)
	}
	w := s.resolveWord(n.Word)
	switch n.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		s.checkHereDocument(n)
	case syntax.WordHdoc:
	case syntax.DplIn, syntax.DplOut:
		if !w.isPlain() || strings.Trim(w.text, "0123456789-") != "" {
			s.addFileAccess(writing, w)
		}
	case syntax.RdrIn:
		s.addFileAccess(reading, w)
	default:
		s.addFileAccess(writing, w)
	}
}

// markInert records a text in which the shell runs nothing more.
// Without it, a "$(" that the parser has read as text would ask: see unquotedSubstitution.
func (s *shellWalk) markInert(parts []syntax.WordPart) {
	for _, p := range parts {
		if lit, ok := p.(*syntax.Lit); ok {
			s.texts[lit] = true
		}
	}
}

// checkHereDocument checks a here-document. Shells disagree on where an unusual one ends, and they
// run the text after the end.
// Only an end that is a simple name is certain, outside of substitutions and without lines that a
// backslash joins. Quotes around the end make the text one that the shell takes as it is.
func (s *shellWalk) checkHereDocument(n *syntax.Redirect) {
	end := ""
	quoted := false
	if len(n.Word.Parts) == 1 {
		switch part := n.Word.Parts[0].(type) {
		case *syntax.Lit:
			end = part.Value
		case *syntax.SglQuoted:
			if quoted = true; !part.Dollar {
				end = part.Value
			}
		case *syntax.DblQuoted:
			if quoted = true; !part.Dollar && len(part.Parts) == 1 {
				if lit, ok := part.Parts[0].(*syntax.Lit); ok {
					end = lit.Value
				}
			}
		}
	}
	joined := !quoted && n.Hdoc != nil && strings.Contains(s.sourceOf(n.Hdoc), "\\\n")
	if !syntax.ValidName(end) || s.inside > 0 || joined {
		s.addUncertain(s.sourceOf(n), "begins a here-document whose end is uncertain")
		return
	}
	if quoted && n.Hdoc != nil {
		s.markInert(n.Hdoc.Parts)
	}
}

// checkFunction asks about a function that has the name of one of the readers.
// Without that question a function named cat would make every later cat look harmless.
func (s *shellWalk) checkFunction(n *syntax.FuncDecl) {
	if n.Name == nil {
		s.addUncertain(s.sourceOf(n), "cannot be known before it runs")
		return
	}
	if _, ok := readers[n.Name.Value]; ok {
		s.addUncertain(n.Name.Value+"()", "changes what a command means")
	}
}

// unquotedSubstitution reports whether the shell might run text that the parser read as plain text.
// The parser and the shell may disagree about a character; a text with the beginning of a
// substitution asks.
func unquotedSubstitution(value string) bool {
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '\\':
			i++
		case '`':
			return true
		case '$', '<', '>':
			if i+1 < len(value) && strings.IndexByte("({[", value[i+1]) >= 0 {
				return true
			}
		}
	}
	return false
}
