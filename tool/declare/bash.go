package declare

import (
	"slices"
	"strings"
)

// ParseBash declares the functions of a bash script by the comments above them, in
// the grammar of the annotations @describe, @cmd, @option, @flag, @arg, @env and
// @meta. A script without @cmd is one tool under the file's name, whose main
// function runs; with @cmd each annotated function is a tool. Lines between
// "# ARGC-BUILD {" and "# ARGC-BUILD }" count as absent. A comment
//
//	# raddle: read-only
//
// below @cmd, or at the top of a script without @cmd, declares an effect.
//
// Annotations and functions begin in the first column. That rule finds what the
// grammar calls a function also in scripts that a shell parser would refuse.
func ParseBash(path string, src []byte) File {
	b := &bashParser{file: File{Path: path, Language: LanguageBash}, functions: map[string]int{}}
	b.lines = strings.Split(string(src), "\n")
	for i := range b.lines {
		b.lines[i] = strings.TrimSuffix(b.lines[i], "\r")
	}
	b.root = &block{line: 1, name: fileStem(path)}
	b.current = b.root
	for b.at = 0; b.at < len(b.lines); b.at++ {
		b.readLine()
	}
	b.closeCommand()
	b.declareAll()
	return b.file
}

// A block is what stands above one function, or above the first one.
type block struct {
	line        int
	name        string // the function, or what names the tool of the file
	description string
	about       annotations
	schema      schema
	command     Command
	inherit     bool   // @meta inherit-flag-options
	broken      string // why the tool cannot be declared
	brokenAt    int
	functions   []functionUse
}

// functionUse is a shell function that an annotation names.
type functionUse struct {
	name string
	line int
}

type bashParser struct {
	file      File
	lines     []string
	at        int
	root      *block
	current   *block // what tags belong to; nil after a function
	commands  []*block
	open      *block // a @cmd whose function has not come yet
	functions map[string]int
	several   bool // there is a @cmd
}

// readLine reads the line at b.at, and skips what belongs to it.
func (b *bashParser) readLine() {
	text := b.lines[b.at]
	if strings.Contains(text, "# ARGC-BUILD {") {
		for b.at < len(b.lines) && !strings.Contains(b.lines[b.at], "# ARGC-BUILD }") {
			b.at++
		}
		return
	}
	if tag, rest, ok := tagLine(text); ok {
		b.handleTag(tag, rest)
		return
	}
	if name, ok := effectOf(text); ok {
		b.addEffect(name)
		return
	}
	if name, ok := functionLine(text); ok {
		b.readFunction(name)
	}
}

// tagLine splits "# @tag rest".
func tagLine(line string) (tag, rest string, ok bool) {
	body := strings.TrimLeft(line, "#")
	if len(body) == len(line) {
		return "", "", false
	}
	body, ok = strings.CutPrefix(strings.TrimLeft(body, " \t"), "@")
	n := 0
	for n < len(body) && isNameByte(body[n]) {
		n++
	}
	return body[:n], body[n:], ok && n > 0
}

// effectOf reads a comment that declares an effect.
func effectOf(line string) (string, bool) {
	body := strings.TrimLeft(line, "#")
	if len(body) == len(line) {
		return "", false
	}
	return findAnnotation(body)
}

// functionLine returns the name in "name()" or "function name".
func functionLine(line string) (string, bool) {
	if rest, ok := strings.CutPrefix(line, "function"); ok && rest != "" && isBlank(rest[0]) {
		c := cursor{text: strings.TrimLeft(rest, " \t")}
		name := c.takeUntil(notInNames)
		return name, name != ""
	}
	c := cursor{text: line}
	name := c.takeUntil(notInNames)
	c.takeBlanks()
	if name == "" || strings.HasPrefix(name, "#") || !c.acceptLiteral("(") {
		return "", false
	}
	c.takeBlanks()
	return name, c.acceptLiteral(")")
}

// notInNames are the bytes that end the name of a function.
const notInNames = " \t\"'`()[]{}<>$&\\;|"

func isFuncName(name string) bool { return name != "" && !strings.ContainsAny(name, notInNames) }

// handleTag handles one annotation.
func (b *bashParser) handleTag(tag, rest string) {
	line := b.at + 1
	if tag == "cmd" {
		b.closeCommand()
		b.several = true
		b.open = &block{line: line}
		b.current = b.open // an effect among the comments below belongs to it
		b.open.description = b.readDescription(rest)
		return
	}
	if !slices.Contains(bashTags, tag) {
		next := "write it without '@' at its beginning"
		if near := nearestTag(tag); near != "" {
			next = "did you mean @" + near + "?"
		}
		b.file.addProblem(line, "", "@%s(line %d) is unknown tag: the line is ignored; %s", tag, line, next)
		return
	}
	if b.current == nil {
		b.file.addProblem(line, "", "@%s(line %d) shouldn't be here, @cmd is missing? The line is ignored", tag, line)
		b.readDescription("")
		return
	}
	switch tag {
	case "describe":
		b.current.description = b.readDescription(rest)
	case "meta":
		b.readMeta(strings.TrimSpace(rest))
	case "option", "flag", "arg":
		b.readParameter(tag, rest)
	case "env":
		b.readEnv(rest)
	}
}

// bashTags are the annotations other than @cmd.
var bashTags = []string{"describe", "version", "author", "meta", "alias", "option", "flag", "arg", "env"}

// nearestTag returns the annotation that differs from a tag in one place: a letter that is wrong, missing or too many.
func nearestTag(tag string) string {
	for _, known := range append([]string{"cmd"}, bashTags...) {
		head := 0
		for head < min(len(tag), len(known)) && tag[head] == known[head] {
			head++
		}
		a := tag[head:]
		b := known[head:]
		switch {
		case len(a) > 0 && (a[1:] == b || len(b) > 0 && a[1:] == b[1:]), len(b) > 0 && a == b[1:]:
			return known
		}
	}
	return ""
}

// wordedTypes maps notations that look like a type and are none to the notation of that type.
var wordedTypes = map[string]string{"INTEGER": "INT", "NUMBER": "NUM", "FLOAT": "NUM", "DOUBLE": "NUM"}

// readDescription returns a description with the comment lines that continue it.
func (b *bashParser) readDescription(first string) string {
	text := []string{strings.TrimSpace(first)}
	for b.at+1 < len(b.lines) {
		line := b.lines[b.at+1]
		body := strings.TrimLeft(line, "#")
		if len(body) == len(line) || strings.Contains(line, "# ARGC-BUILD {") || strings.HasPrefix(strings.TrimLeft(body, " \t"), "@") {
			break
		}
		b.at++
		if name, ok := effectOf(line); ok {
			b.addEffect(name)
			continue
		}
		if body != "" && isBlank(body[0]) {
			body = body[1:]
		}
		text = append(text, strings.ReplaceAll(body, `\@`, "@"))
	}
	return strings.TrimSpace(strings.Join(text, "\n"))
}

func (b *bashParser) addEffect(name string) {
	if b.current == nil {
		b.file.addProblem(b.at+1, "", "an effect is declared below @cmd and above its function: move the line")
		return
	}
	if problem := b.current.about.addAnnotation(name); problem != "" {
		b.file.addProblem(b.at+1, "", "%s", problem)
	}
}

func (b *bashParser) readMeta(text string) {
	key, value, _ := strings.Cut(text, " ")
	value = strings.TrimSpace(value)
	switch key {
	case "require-tools":
		names := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
		b.current.command.Requires = append(b.current.command.Requires, names...)
	case "dotenv":
		b.current.command.Dotenv = value
		if value == "" {
			b.current.command.Dotenv = ".env"
		}
	case "inherit-flag-options":
		b.current.inherit = true
	case "binname":
		if b.current == b.root && value != "" {
			b.root.name = value
		}
	}
}

// markBroken marks the current tool as one that cannot be declared.
func (b *bashParser) markBroken(line int, why string) {
	if b.current.broken == "" {
		b.current.broken = why
		b.current.brokenAt = line
	}
}

func (b *bashParser) readParameter(tag, rest string) {
	line := b.at + 1
	c := cursor{text: rest}
	var a annotatedParameter
	var err error
	switch {
	case c.takeBlanks() == "":
		err = errSyntax
	case tag == "arg":
		a, err = parseArg(c.remainingText())
	default:
		a, err = parseOption(c.remainingText(), tag == "flag")
	}
	more := b.readDescription(a.description)
	if err != nil {
		b.markBroken(line, "@"+tag+" does not follow the grammar, as in: # @option --name! <INT> what it is")
		return
	}
	o := a.option
	if len(o.Notations) > 0 && wordedTypes[o.Notations[0]] != "" {
		b.file.addProblem(line, "", "<%s> is only a name here, and the value a text; write <%s> for a number", o.Notations[0], wordedTypes[o.Notations[0]])
	}
	b.addFunctionUse(line, o.Default.Fn, o.ChoiceFn)
	k := &b.current.command
	if hasOption(k.Options, o.Var) || hasOption(k.Positional, o.Var) {
		b.file.addProblem(line, "", "@%s(line %d) has '%s' already exists: the line is ignored, rename one of them", tag, line, o.Name)
		return
	}
	p := o.buildProperty(more)
	if tag == "arg" {
		k.Positional = append(k.Positional, o)
	} else {
		k.Options = append(k.Options, o)
	}
	b.current.schema.putProperty(p)
}

func (b *bashParser) readEnv(rest string) {
	line := b.at + 1
	env, err := parseEnv(strings.TrimSpace(rest))
	b.readDescription("")
	if err != nil {
		b.markBroken(line, "@env does not follow the grammar, as in: # @env API_KEY! what it is")
		return
	}
	b.addFunctionUse(line, env.Default.Fn, env.ChoiceFn)
	b.current.command.Env = append(b.current.command.Env, env)
}

func (b *bashParser) addFunctionUse(line int, names ...string) {
	for _, n := range names {
		if n != "" {
			b.current.functions = append(b.current.functions, functionUse{n, line})
		}
	}
}

// closeCommand adds a problem for a @cmd that no function has followed.
func (b *bashParser) closeCommand() {
	if b.open != nil {
		b.file.addProblem(b.open.line, "", "@cmd(line %d) missing function? Write 'name() {' below it, in the first column", b.open.line)
	}
	b.open = nil
}

func (b *bashParser) readFunction(name string) {
	if _, known := b.functions[name]; !known {
		b.functions[name] = b.at + 1
	}
	if b.open != nil {
		b.open.name = name
		b.open.line = b.at + 1
		b.commands = append(b.commands, b.open)
	}
	b.open = nil
	b.current = nil
}
