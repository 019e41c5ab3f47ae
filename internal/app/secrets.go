package app

// scriptEnv is the environment of scripts: this process's without the keys of
// model providers.
func (p *Process) scriptEnv() []string {
	env := p.env.without(keyVariables(&p.Config))
	if env == nil {
		return []string{} // none at all, not this process's
	}
	return env
}
