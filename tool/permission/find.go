package permission

import (
	"slices"
	"strings"
)

// analyzeFind looks at the commands that find -exec runs, and reports whether it has
// dealt with all of the command.
// Each command ends at ";", or at "+" after "{}". What it does to the files that are found is not
// known by name, so find reads the contents of everything below its directories, and may write it
// unless all its commands are harmless.
func (s *shellAnalyzer) analyzeFind(words []word) bool {
	args := words[1:]
	if !allPlain(args) {
		return false
	}
	var rest []word
	runs := false
	if before := s.found; !runsOnly(args, harmlessOnFound) {
		// what it runs gets what it finds
		s.found = s.findProtected(need{words: append([]word{words[0]}, findRoots(args)...)})
		defer func() { s.found = before }()
	}
	for i := 0; i < len(args); i++ {
		switch args[i].text {
		case "-exec", "-execdir", "-ok", "-okdir":
		default:
			rest = append(rest, args[i])
			continue
		}
		end := i + 1
		for end < len(args) && args[end].text != ";" && (args[end].text != "+" || args[end-1].text != "{}") {
			end++
		}
		if args[i].text != "-exec" {
			rest = append(rest, args[i]) // it asks
		}
		if inner := args[i+1 : end]; len(inner) > 0 {
			was := s.lost
			times := s.times
			s.times *= maxFiles                                    // it may find as many
			s.lost = was || strings.HasSuffix(args[i].text, "dir") // it runs in the directory of what is found
			s.analyzeInner(nil, inner)
			s.lost = was
			s.times = times
		}
		i = end
		runs = true
	}
	if !runs {
		if slices.ContainsFunc(args, func(a word) bool {
			return a.text == "-delete" || strings.HasPrefix(a.text, "-fprint") || a.text == "-fls"
		}) {
			s.findWrites(args)
			s.addGuesses(nil, words)
		}
		return false
	}
	verdict, why := s.judgeCommand(append([]word{words[0]}, rest...))
	if !findsOnlyFiles(rest) {
		verdict = max(verdict, Ask)
		why = "may find links that lead out of the workspace: -type f and no alternatives would keep to files"
	}
	if s.mayBecomeFlag(args) {
		verdict = Ask
		why = "has a pattern that may match a file whose name begins with -"
	}
	n := commandNeed(nil, words, verdict, why)
	n.risk, _ = s.riskOf(words)
	s.addCommand(n)
	s.findReads(rest, contents, verdict == Ask)
	if !runsOnly(args, harmlessOnFound) {
		s.findWrites(rest)
	}
	return true
}

// harmlessOnFound are commands that find may run on what it finds without writing it.
var harmlessOnFound = []string{"cat", "echo", "file", "grep", "head", "ls", "stat", "tail", "wc"}

// runsOnly reports whether all that find runs is among some commands.
func runsOnly(args []word, some []string) bool {
	for i, a := range args {
		if strings.HasPrefix(a.text, "-exec") || strings.HasPrefix(a.text, "-ok") {
			if i+1 >= len(args) || !slices.Contains(some, args[i+1].text) {
				return false
			}
		}
	}
	return true
}

// findsOnlyFiles reports whether find finds nothing but files.
// Then no link is among what it finds, through which a command could leave the workspace.
func findsOnlyFiles(args []word) bool {
	only := false
	for i, a := range args {
		switch a.text {
		case "-o", "-or", "!", "-not", ",":
			return false
		case "-type":
			only = only || i+1 < len(args) && args[i+1].text == "f"
		}
	}
	return only
}

// findReads adds the directories in which find looks, and the files whose times it
// compares.
func (s *shellAnalyzer) findReads(args []word, how reach, asked bool) {
	roots := findRoots(args)
	if len(roots) == 0 {
		roots = []word{literalWord(".")}
	}
	if at := slices.IndexFunc(args, func(a word) bool { return a.text == "-maxdepth" }); how == names && at >= 0 && at+1 < len(args) && (args[at+1].text == "0" || args[at+1].text == "1") {
		how = itself
	}
	follows := hasFlag(args, "L", "follow")
	for _, root := range roots {
		s.addAccess(access{kind: reading, word: root, reach: how, follows: follows, asked: asked})
	}
	for i := 0; i+1 < len(args); i++ {
		if t := args[i].text; strings.HasPrefix(t, "-newer") || t == "-anewer" || t == "-cnewer" || t == "-samefile" {
			s.addAccess(access{kind: reading, word: args[i+1], asked: asked})
		}
	}
}

// findRoots returns the directories in which find looks; none: the working directory.
func findRoots(args []word) (roots []word) {
	for i := 0; i < len(args); i++ {
		t := args[i].text
		if slices.Contains([]string{"-H", "-L", "-P"}, t) || strings.HasPrefix(t, "-O") {
			continue
		}
		if t == "-D" {
			i++
			continue
		}
		if args[i].isPlain() && (strings.HasPrefix(t, "-") || t == "(" || t == "!" || t == ")") {
			break
		}
		roots = append(roots, args[i])
	}
	return roots
}

// findWrites adds what find may change: everything below the directories in which it
// looks.
func (s *shellAnalyzer) findWrites(args []word) {
	from := len(s.needs)
	s.findReads(args, contents, true)
	for i := from; i < len(s.needs); i++ {
		s.needs[i].kind, s.needs[i].guess, s.needs[i].fallback = writing, true, Allow
	}
}

func findCheck(args []word) string {
	if !allPlain(args) {
		return unknownArgument
	}
	for _, a := range args {
		switch t := a.text; {
		case t == "-delete", t == "-fls", t == "-L", t == "-follow", t == "-ok", t == "-okdir", t == "-execdir", t == "-exec",
			strings.HasPrefix(t, "-fprint"), strings.HasPrefix(t, "-files0"):
			return "does more than read with " + t
		}
	}
	return ""
}
