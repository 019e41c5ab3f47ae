package app

import (
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"

	"raddle.dev/flow"
	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/process/mcplogin"
	"raddle.dev/internal/process/provider"
	"raddle.dev/internal/process/toolbox"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/keystore"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/tool/script"
)

// Options change how a process uses its surroundings. The zero value changes
// nothing.
type Options struct {
	Environ []string     // nil: the environment of this process
	Work    string       // working directory; "": that of this process
	Store   string       // URL; "": as the configuration says
	Log     *slog.Logger // developer log; nil: none
}

// Process is the part of a raddle process that all user interfaces share. It is
// safe for concurrent use.
type Process struct {
	Dirs   config.Dirs
	Config config.Config
	Models *provider.Resolver // models of the configured clients
	Runs   *runs.Archive      // runs of the store that the configuration names

	Log *slog.Logger // nil: no log

	User string // for whom runs work that this process starts; "": not known. The service of a server does not set it

	Keys *keystore.Store // keys of providers that the user stored

	Bundled *Bundled // agents that come with the program

	Tools *toolbox.Shared // tools of agents, with the consent and the secrets that they need

	// Adjust is UIHooks.Adjust of every run that has none; nil: nothing is changed. It is set before the first run.
	Adjust func(*flow.Host)

	// ConfigEnviron are the variables that config.yaml and the clients of models see: those of the process, and those
	// of .env in the directory of config.yaml that it does not have.
	ConfigEnviron environ.Environ
	DotenvFaults  []script.DotenvFault // of that file

	env     environ.Environ
	trace   tracer
	postman postman
}

// Open finds the directories and reads the configuration. If the configuration
// has errors, it returns them together with a Process that works without it, so
// that the caller can still report on the surroundings.
func Open(o Options) (*Process, error) {
	p := &Process{env: environ.New(o.Environ), Log: o.Log}
	p.trace.process = p
	var err error
	p.ConfigEnviron = p.env
	if p.Dirs, err = config.FindDirs(p.env, o.Work); err == nil {
		p.ConfigEnviron, p.DotenvFaults = addDotenv(p.env, p.Dirs.Config)
		p.Config, err = config.Load(p.Dirs.Config, p.ConfigEnviron)
		if o.Store != "" {
			p.Config.Store = o.Store
		}
	}
	p.Bundled = &Bundled{dirs: p.Dirs}
	p.Models = provider.NewResolver(&p.Config, p.Dirs, p.ConfigEnviron)
	p.Tools = toolbox.NewShared(p.Dirs, &p.Config, p.env, o.Log)
	p.Keys = keystore.New(p.Dirs.Config, p.env)
	p.Models.UseStoredKeys(p.Keys, func(key string) { p.Tools.SecretSet().Add(key) })
	p.Tools.StoredKeys = p.Keys.FileKeys
	p.Tools.Logins = &mcplogin.Tokens{
		Keys:   p.Keys,
		Secret: func(values ...string) { p.Tools.SecretSet().Add(values...) },
	}
	p.Runs = runs.NewArchive(p.Dirs, p.Config.Store)
	p.Tools.OpenMemory = p.Runs.OpenMemory
	p.Tools.Embedder = p.openMemoryEmbedder
	return p, err
}

// addDotenv returns an environment with the variables of .env in the directory of config.yaml that it does not have.
// The file is the user's own; no other .env changes keys or addresses of providers, since it may come with a
// repository.
func addDotenv(env environ.Environ, dir string) (environ.Environ, []script.DotenvFault) {
	vars, faults := script.ReadDotenv("", filepath.Join(dir, ".env"))
	var all environ.Environ
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		all = append(all, name+"="+vars[name])
	}
	return append(all, env...), faults
}

// Environ returns the environment of the process, as Options have it.
func (p *Process) Environ() []string { return p.env }

// Close ends the servers of tools, closes the store, and sends what telemetry has not sent yet.
func (p *Process) Close() error {
	return errors.Join(p.Tools.Close(), p.Runs.Close(), p.trace.telemetry.Close())
}

// LookupVariable returns a variable of the environment of the process; ok is false if it is not set.
func (p *Process) LookupVariable(name string) (value string, ok bool) { return p.env.Lookup(name) }
