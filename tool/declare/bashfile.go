package declare

import (
	"cmp"
	"slices"
	"strings"
)

// declareAll turns what was read into declarations.
func (b *bashParser) declareAll() {
	if !b.several {
		b.declareRoot()
	}
	for _, c := range b.commands {
		b.declareCommand(c)
	}
}

// declareRoot declares a script without commands.
func (b *bashParser) declareRoot() {
	r := b.root
	line, found := b.functions["main"]
	if !found {
		line = r.line
		b.file.addProblem(0, "", "there is no function main, which is what a call runs: write 'main() {' in the first column")
	}
	if d := b.buildDeclaration(r); d != nil {
		d.Name = strings.ReplaceAll(r.name, "-", "_")
		d.Function = "main"
		d.Line = line
		b.file.addDeclaration(*d)
	}
}

// declareCommand declares one function of several. Nested commands and those
// whose name begins with an underscore stay private.
func (b *bashParser) declareCommand(c *block) {
	private := strings.HasPrefix(c.name, "_") || strings.Contains(c.name, "::")
	if private && c.name != instructions {
		return
	}
	b.inheritFromRoot(c)
	if c.name == instructions && c.description == "" {
		c.description = instructions // it is not shown
	}
	d := b.buildDeclaration(c)
	if d == nil {
		return
	}
	d.Function = c.name
	d.Line = c.line
	d.Agent = true
	d.Name = strings.ReplaceAll(strings.TrimRight(c.name, "_"), "-", "_")
	if c.name == instructions {
		d.Name = instructions
		b.file.Instructions = d
		return
	}
	b.file.addDeclaration(*d)
}

// inheritFromRoot adds to a command what it inherits from the root.
func (b *bashParser) inheritFromRoot(c *block) {
	r := &b.root.command
	k := &c.command
	k.Requires = append(append([]string(nil), r.Requires...), k.Requires...)
	if k.Dotenv == "" {
		k.Dotenv = r.Dotenv
	}
	var envs []EnvVar
	for _, e := range r.Env {
		if !hasEnv(k.Env, e.Name) {
			envs = append(envs, e)
		}
	}
	k.Env = append(envs, k.Env...)
	if b.root.broken == "" {
		c.about.effect = cmp.Or(c.about.effect, b.root.about.effect)
		c.about.inDoubt = cmp.Or(c.about.inDoubt, b.root.about.inDoubt)
	}
	if !b.root.inherit {
		return
	}
	b.inheritOptions(c)
}

// inheritOptions puts the root's options before the command's own. An option of the
// command replaces one of the root with the same name.
func (b *bashParser) inheritOptions(c *block) {
	var options []Option
	var properties []property
	for _, o := range b.root.command.Options {
		if hasOption(c.command.Options, o.Var) || hasOption(c.command.Positional, o.Var) {
			continue
		}
		options = append(options, o)
		for _, p := range b.root.schema.properties {
			if p.name == o.Key {
				properties = append(properties, p)
			}
		}
	}
	c.command.Options = append(options, c.command.Options...)
	c.schema.properties = append(properties, c.schema.properties...)
}

func hasOption(options []Option, variable string) bool {
	for _, o := range options {
		if o.Var == variable {
			return true
		}
	}
	return false
}

func hasEnv(envs []EnvVar, name string) bool {
	for _, e := range envs {
		if e.Name == name {
			return true
		}
	}
	return false
}

// buildDeclaration returns the tool of a block without its name, or nil if it has to be
// left out.
func (b *bashParser) buildDeclaration(c *block) *Declaration {
	if c.broken == "" && c != b.root && b.root.inherit {
		c.broken = b.root.broken
		c.brokenAt = b.root.brokenAt
	}
	if c.broken != "" {
		b.file.addProblem(c.brokenAt, c.name, "syntax error at line %d: %s", c.brokenAt, c.broken)
		return nil
	}
	if c.description == "" {
		name := c.name
		tag := "@describe"
		if c != b.root {
			name = fileStem(b.file.Path) + " " + c.name
			tag = "@cmd"
		}
		b.file.addProblem(c.line, c.name, "Tool definition missing or empty description: %s: say after %s what it does", name, tag)
		return nil
	}
	for _, f := range c.functions {
		if _, ok := b.functions[f.name]; !ok {
			b.file.addProblem(f.line, "", "%s(line %d) is missing: write the function, or take its name out of the annotation", f.name, f.line)
		}
	}
	s := schema{kind: "object", properties: c.schema.properties, required: []string{}}
	for _, o := range slices.Concat(c.command.Options, c.command.Positional) {
		if o.Required {
			s.required = append(s.required, o.Key)
		}
	}
	command := c.command
	d := &Declaration{Description: c.description, Command: &command}
	s.properties = modelProperties(s.properties)
	s.required = modelNames(s.required)
	d.Schema = s.jsonText()
	d.Effect = c.about.effect
	d.InDoubt = c.about.inDoubt
	return d
}

// modelProperties returns the properties without those that belong to the command line.
func modelProperties(all []property) []property {
	var out []property
	for _, p := range all {
		if !isReserved(p.name) {
			out = append(out, p)
		}
	}
	return out
}

func modelNames(names []string) []string {
	out := []string{}
	for _, n := range names {
		if !isReserved(n) {
			out = append(out, n)
		}
	}
	return out
}

func isReserved(key string) bool { return key == "help" || key == "version" }
