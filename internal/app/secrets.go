package app

import "regexp"

// named is a variable of the environment that the value of an agent's variable
// names.
var named = regexp.MustCompile(`\{\{([A-Za-z_][A-Za-z0-9_]*)\}\}`)

// resolved are the values of an agent's variables as its tools get them: with what
// the environment has for {{NAME}}. Everybody else sees the name, so that a secret
// is in no prompt and no journal.
func (p *Process) resolved(values map[string]string) map[string]string {
	out := make(map[string]string, len(values))
	for name, value := range values {
		out[name] = named.ReplaceAllStringFunc(value, func(found string) string {
			if v, ok := p.env.lookup(found[2 : len(found)-2]); ok {
				return v
			}
			return found
		})
	}
	return out
}

// scriptEnv is the environment of scripts: this process's without the keys of
// model providers.
func (p *Process) scriptEnv() []string {
	env := p.env.without(keyVariables(&p.Config))
	if env == nil {
		return []string{} // none at all, not this process's
	}
	return env
}
