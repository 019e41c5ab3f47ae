package declare

import (
	"errors"
	"strings"
)

// errSyntax is the error of an annotation that does not follow the grammar.
var errSyntax = errors.New("syntax error")

// A cursor reads one annotation from left to right.
type cursor struct {
	text string
	at   int
}

func (c *cursor) remainingText() string { return c.text[c.at:] }

// acceptLiteral consumes a literal, if it comes next.
func (c *cursor) acceptLiteral(lit string) bool {
	if !strings.HasPrefix(c.remainingText(), lit) {
		return false
	}
	c.at += len(lit)
	return true
}

// takeWhile consumes bytes as long as ok accepts them, and returns them.
func (c *cursor) takeWhile(ok func(byte) bool) string {
	start := c.at
	for c.at < len(c.text) && ok(c.text[c.at]) {
		c.at++
	}
	return c.text[start:c.at]
}

// takeUntil consumes the text before the first of the bytes, or all text.
func (c *cursor) takeUntil(stops string) string {
	return c.takeWhile(func(b byte) bool { return strings.IndexByte(stops, b) < 0 })
}

func (c *cursor) takeBlanks() string { return c.takeWhile(isBlank) }

func isBlank(b byte) bool { return b == ' ' || b == '\t' }

func isNameByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("_-.:@", b) >= 0
}

// readDescription returns the description that ends an annotation: nothing, or a blank and text.
func (c *cursor) readDescription() (string, error) {
	if c.remainingText() != "" && c.takeBlanks() == "" {
		return "", errSyntax
	}
	return strings.TrimSpace(c.remainingText()), nil
}

// An annotatedParameter holds what an @option, @flag, @arg or @env line says.
type annotatedParameter struct {
	option      Option
	description string
	mode        byte // the modifier: ! * + ~ or 0
}

// parseOption reads what follows @option or @flag.
func parseOption(text string, flag bool) (annotatedParameter, error) {
	c := &cursor{text: text}
	a := annotatedParameter{option: Option{Flag: flag}}
	short, prefix, name, err := c.optionName(flag)
	if err != nil {
		return a, err
	}
	a.option.Short = short
	if flag {
		if c.acceptLiteral("*") {
			a.option.Multi = true
		}
		a.option.Env = c.readEnvName(name)
	} else if err = c.readValue(&a, &name); err != nil {
		return a, err
	}
	a.description, err = c.readDescription()
	a.option.deriveFields(prefix, name)
	return a, err
}

// parseArg reads what follows @arg.
func parseArg(text string) (annotatedParameter, error) {
	c := &cursor{text: text}
	a := annotatedParameter{}
	name := c.takeWhile(isNameByte)
	if name == "" {
		return a, errSyntax
	}
	err := c.readValue(&a, &name)
	if err != nil {
		return a, err
	}
	a.description, err = c.readDescription()
	a.option.deriveFields("", name)
	return a, err
}

// parseEnv reads what follows @env.
func parseEnv(text string) (EnvVar, error) {
	c := &cursor{text: text}
	a := annotatedParameter{}
	name := c.takeWhile(isNameByte)
	if name == "" || name != c.varName(name) {
		return EnvVar{}, errSyntax
	}
	if err := c.readValue(&a, &name); err != nil {
		return EnvVar{}, err
	}
	_, err := c.readDescription()
	if a.mode != 0 && a.mode != '!' {
		err = errSyntax // an environment variable has one value
	}
	o := a.option
	env := EnvVar{Name: name, Required: o.Required, Default: o.Default, Choices: o.Choices}
	if !o.Unchecked {
		env.ChoiceFn = o.ChoiceFn
	}
	return env, err
}

// optionName reads "[-s] --name" or "-s", and returns the short name, the dashes and the name.
func (c *cursor) optionName(flag bool) (short, prefix, name string, err error) {
	c.takeBlanks()
	start := c.at
	if s := c.remainingText(); len(s) > 2 && (s[0] == '-' || s[0] == '+') && !isBlank(s[1]) && isBlank(s[2]) {
		c.at += 2 // a short name, if a long one follows
		c.takeBlanks()
		if !strings.HasPrefix(c.remainingText(), "-") && !strings.HasPrefix(c.remainingText(), "+") {
			c.at = start
		} else {
			short = s[:2]
		}
	}
	for _, p := range []string{"--", "-", "+"} {
		if c.acceptLiteral(p) {
			prefix = p
			break
		}
	}
	name = c.takeWhile(isNameByte)
	if name == "" && prefix != "" && prefix != "--" && flag && c.remainingText() != "" && !isBlank(c.remainingText()[0]) {
		name = c.remainingText()[:1] // a short flag may be any sign
		c.at++
	}
	if prefix == "" || name == "" {
		return "", "", "", errSyntax
	}
	return short, prefix, name, nil
}

// readValue reads what follows the name: modifier, default or choices, the bound
// environment variable and notations.
func (c *cursor) readValue(a *annotatedParameter, name *string) error {
	o := &a.option
	if s := c.remainingText(); s != "" && strings.IndexByte("!*+~", s[0]) >= 0 {
		a.mode = s[0]
		c.at++
	}
	switch a.mode {
	case '!':
		o.Required = true
	case '~':
		o.Max = -1
	case '*', '+':
		o.Multi = true
		o.Required = a.mode == '+'
		if s := c.remainingText(); s != "" && strings.IndexByte(",:;@|/", s[0]) >= 0 {
			o.Delimiter = s[:1]
			c.at++
		}
	}
	*name = plainName(*name)
	var err error
	switch {
	case *name == "":
		err = errSyntax
	case c.acceptLiteral("["):
		err = c.readChoices(o)
	case a.mode == 0 && c.acceptLiteral("="):
		o.Default, err = c.defaultValue()
	}
	if err != nil {
		return err
	}
	o.Env = c.readEnvName(*name)
	for c.readNotation(o) {
	}
	o.Required = o.Required && !o.Default.Given
	return nil
}

// plainName drops the sign at the end of a name that says how values are
// attached; a doubled sign means itself.
func plainName(name string) string {
	for _, sign := range []string{":", "-"} {
		if short, ok := strings.CutSuffix(name, sign); ok {
			return short
		}
	}
	return name
}

// readChoices reads the inside of brackets.
func (c *cursor) readChoices(o *Option) error {
	unchecked := c.acceptLiteral("?")
	if c.acceptLiteral("`") {
		fn, ok := c.readFuncName()
		if !ok || !c.acceptLiteral("]") {
			return errSyntax
		}
		o.ChoiceFn = fn
		o.Unchecked = unchecked
		return nil
	}
	if unchecked {
		return errSyntax
	}
	first := c.acceptLiteral("=")
	for {
		v, ok := c.readChoice()
		if !ok {
			return errSyntax
		}
		o.Choices = append(o.Choices, v)
		if !c.acceptLiteral("|") {
			break
		}
	}
	if first {
		o.Default = Value{Text: o.Choices[0], Given: true}
	}
	if !c.acceptLiteral("]") || first && len(o.Choices) < 2 {
		return errSyntax
	}
	return nil
}

func (c *cursor) readChoice() (string, bool) {
	if v, ok := c.readQuoted(); ok {
		return v, true
	}
	if s := c.remainingText(); s == "" || s[0] == '=' || s[0] == '`' {
		return "", false
	}
	return c.takeUntil("|]"), true
}

func (c *cursor) defaultValue() (Value, error) {
	if c.acceptLiteral("`") {
		fn, ok := c.readFuncName()
		if !ok {
			return Value{}, errSyntax
		}
		return Value{Fn: fn, Given: true}, nil
	}
	if v, ok := c.readQuoted(); ok {
		return Value{Text: v, Given: true}, nil
	}
	return Value{Text: c.takeUntil(" \t"), Given: true}, nil
}

// readFuncName reads the name of a function up to the closing backquote.
func (c *cursor) readFuncName() (string, bool) {
	name := c.takeUntil("`")
	return name, isFuncName(name) && c.acceptLiteral("`")
}

// readQuoted reads a text in quotes of either kind. A backslash keeps the quote
// after it from ending the text, and stays.
func (c *cursor) readQuoted() (string, bool) {
	s := c.remainingText()
	if s == "" || s[0] != '\'' && s[0] != '"' {
		return "", false
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			c.at += i + 1
			return s[1:i], true
		}
	}
	return "", false
}

// readEnvName reads " $$" or " $NAME", which bind an environment variable.
func (c *cursor) readEnvName(name string) string {
	start := c.at
	if c.acceptLiteral(" $") {
		if c.acceptLiteral("$") {
			return strings.ToUpper(strings.TrimPrefix(variableName(name), "argc_"))
		}
		if v := c.varName(c.remainingText()); v != "" {
			c.at += len(v)
			return v
		}
	}
	c.at = start
	return ""
}

// varName returns the name of a variable that text begins with.
func (c *cursor) varName(text string) string {
	n := 0
	for n < len(text) && (text[n] == '_' || isNameByte(text[n]) && strings.IndexByte("-.:@", text[n]) < 0) {
		n++
	}
	if n > 0 && text[0] >= '0' && text[0] <= '9' {
		return ""
	}
	return text[:n]
}

// readNotation reads one " <TEXT>", with exactly one blank before it.
func (c *cursor) readNotation(o *Option) bool {
	s := c.remainingText()
	if !strings.HasPrefix(s, " <") {
		return false
	}
	depth := 0
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '<':
			depth++
		case '>':
			depth--
		}
		if depth == 0 {
			o.Notations = append(o.Notations, s[2:i])
			c.at += i + 1
			return true
		}
	}
	return false
}
