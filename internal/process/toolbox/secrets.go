package toolbox

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/redact"
	"raddle.dev/internal/process/provider"
	"raddle.dev/internal/storage/stores"
	"raddle.dev/tool/mcp"
	"raddle.dev/tool/script"
)

// SecretSet returns the redactor of the process. It knows the secrets in the
// environment, the configuration, the file of stored keys, the .env files of the configuration directory
// and the working directory, and the entries of MCP servers; agents and servers
// that are opened later add theirs.
func (s *Shared) SecretSet() *redact.Set {
	s.known.Do(func() {
		s.secrets = &redact.Set{}
		s.addVariables(s.env)
		for _, dir := range []string{s.Dirs.Config, s.Dirs.Work} {
			s.AddDotenv(dir)
		}
		for _, c := range provider.CompleteClients(s.Config, s.env) {
			s.secrets.Add(c.Key)
			s.secrets.AddNamed("", c.Base)
			s.secrets.AddNamed("", c.Proxy)
			s.secrets.Add(slices.Collect(maps.Values(c.Headers))...)
		}
		if s.StoredKeys != nil {
			s.secrets.Add(s.StoredKeys()...)
		}
		s.secrets.AddNamed("", s.Config.Store)
		for _, path := range (&Toolbox{
			shared:    s,
			workspace: s.Dirs.Work,
		}).serverFiles("")[1:] { // the first belongs to an agent
			if file, err := mcp.Load(path); err == nil {
				s.secrets.Add(file.Secrets(s.env.Lookup)...)
			}
		}
	})
	return s.secrets
}

// addVariables adds the secrets in an environment.
func (s *Shared) addVariables(env environ.Environ) {
	for _, entry := range env {
		if name, value, ok := strings.Cut(entry, "="); ok {
			s.secrets.AddNamed(name, value)
		}
	}
	for _, name := range provider.ListKeyVariables(s.Config) {
		s.secrets.Add(env.Get(name))
	}
}

// AddDotenv adds the secrets in the .env file of a directory. Scripts get no variables from a file outside of it, so
// neither does the redactor, except where the user keeps the files of raddle.
func (s *Shared) AddDotenv(dir string) {
	if dir == "" {
		return
	}
	root := dir
	if dir == s.Dirs.Config {
		root = ""
	}
	var env environ.Environ
	vars, _ := script.ReadDotenv(root, filepath.Join(dir, ".env"))
	for name, value := range vars {
		env = append(env, name+"="+value)
	}
	s.addVariables(env)
}

// plainVariables are variables that commands cannot do without. They hold no secrets, even if a weak password occurs in
// their values.
var plainVariables = []string{"PATH", "HOME", "PWD", "SHELL", "TERM", "TMPDIR", "USER", "LOGNAME", "LANG"}

// isSecretVariable reports whether a variable of the environment has a secret in it, as far as the redactor knows.
func (s *Shared) isSecretVariable(name, value string) bool {
	if slices.ContainsFunc(plainVariables, func(plain string) bool { return strings.EqualFold(plain, name) }) {
		return false
	}
	return redact.HasSecret(name, value) || s.SecretSet().Text(value) != value
}

// named matches a variable of the environment that the value of an agent's variable
// names.
var named = pattern.CompileLater(`\{\{([A-Za-z_][A-Za-z0-9_]*)\}\}`)

// resolveVariables returns the values of an agent's variables as its tools get them: {{NAME}}
// is replaced by the variable of the environment. Everything else sees only the name, so
// that a secret is in no prompt and no journal.
func (s *Shared) resolveVariables(values map[string]string) map[string]string {
	out := make(map[string]string, len(values))
	for name, value := range values {
		out[name] = named().ReplaceAllStringFunc(value, func(found string) string {
			if v, ok := s.env.Lookup(found[2 : len(found)-2]); ok {
				return v
			}
			return found
		})
		s.SecretSet().AddNamed(name, out[name])
	}
	return out
}

// findUnresolvedVariables returns what is missing in the values of an agent's variables, with what
// to do about it.
func (s *Shared) findUnresolvedVariables(agent string, values map[string]string) (problems []string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, found := range named().FindAllStringSubmatch(values[name], -1) {
			if _, ok := s.env.Lookup(found[1]); !ok && !strings.HasPrefix(found[1], "__") {
				problems = append(problems, fmt.Sprintf("the variable %q of agent %s names %s, which is not set in the environment: tools get the text as it is. Set %s",
					name, agent, found[0], found[1]))
			}
		}
	}
	return problems
}

// storeVariable names the store of runs, whose URL may have a password.
const storeVariable = "RADDLE_STORE"

// ScriptEnv returns the environment of scripts: this process's without the keys of
// model providers and the password of the store.
func (s *Shared) ScriptEnv() []string {
	hidden := provider.ListKeyVariables(s.Config)
	if url := s.env.Get(storeVariable); stores.HidePassword(url) != url { // also one that is too short to be redacted
		hidden = append(hidden, storeVariable)
	}
	env := s.env.WithoutNames(hidden...)
	if env == nil {
		return []string{} // empty, not nil, which would mean that of this process
	}
	return env
}
