package moving

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/redact"
)

// A serverNames says how a program calls the fields of a server; "" is the name in mcp.json.
type serverNames struct {
	command, args, env, url, headers string
	off                              string // a flag that switches the server off
	on                               string // a flag that must be true
	seconds                          string // the time of one call in seconds
}

func (n serverNames) chooseField(own, usual string) string {
	if own != "" {
		return own
	}
	return usual
}

// takeServers takes the servers of a table. from is the file as a whole.
func (r *reader) takeServers(from tree, servers tree, names serverNames) {
	for _, id := range servers.listKeys() {
		t := servers.getTable(id)
		if len(t.values) == 0 {
			continue
		}
		r.takeServer(from.path, id, t, names)
	}
}

// knownServerKeys are fields of servers that need no word: raddle has them, or does the same by itself.
var knownServerKeys = []string{"type", "command", "args", "env", "url", "headers", "cwd", "description", "name", "enabled", "disabled", "transport", "timeout", "httpUrl"}

// takeServer takes one server.
func (r *reader) takeServer(from, id string, t tree, names serverNames) {
	if !isName(id) || strings.ContainsAny(id, " ") {
		r.leaveThing(kindServer, id, from, "the name cannot be that of a server")
		return
	}
	if names.off != "" && t.getFlag(names.off) || names.on != "" && t.hasKey(names.on) && !t.getFlag(names.on) {
		r.leaveThing(kindServer, id, from, "it is switched off")
		return
	}
	h := &secretHider{server: id}
	o := jsonvalue.NewObject()
	command := t.getText(names.chooseField(names.command, "command"))
	address := t.getText(names.chooseField(names.url, "url"))
	switch {
	case command != "":
		o.Set("command", command)
		setList(o, "args", h.hideArgs(t.getList(names.chooseField(names.args, "args"))))
		setTable(o, "env", h.hideTable(t.getTexts(names.chooseField(names.env, "env"))))
		if dir := t.getText("cwd"); dir != "" {
			o.Set("cwd", dir)
		}
	case address != "":
		kind := t.getText("type")
		if kind != "sse" {
			kind = "http"
		}
		o.Set("type", kind)
		o.Set("url", h.hideAddress(address))
		setTable(o, "headers", h.hideTable(t.getTexts(names.chooseField(names.headers, "headers"))))
	default:
		r.leaveThing(kindServer, id, from, "it has neither a command nor an address that raddle understands")
		return
	}
	r.takeServerEntry(from, id, o, h, t, names)
}

// takeServerEntry takes a server that was read.
func (r *reader) takeServerEntry(from, id string, o *jsonvalue.Object, h *secretHider, t tree, names serverNames) {
	var notes []string
	if seconds, err := strconv.ParseFloat(t.getText(names.seconds), 64); names.seconds != "" && err == nil && seconds > 0 {
		o.Set("timeout", strconv.FormatFloat(seconds, 'f', -1, 64)+"s")
	}
	if len(h.variables) > 0 {
		notes = append(notes, "set "+strings.Join(h.variables, ", ")+": secrets are not copied")
	}
	var ignored []string
	own := []string{names.command, names.args, names.env, names.url, names.headers, names.off, names.on, names.seconds}
	for _, key := range t.listKeys() {
		if !slices.Contains(knownServerKeys, key) && !slices.Contains(own, key) {
			ignored = append(ignored, key)
		}
	}
	if len(ignored) > 0 {
		notes = append(notes, strings.Join(ignored, ", ")+" has no effect here")
	}
	if t.getFlag("trust") {
		notes = append(notes, "its calls ask: trust does not allow them here")
	}
	r.takeThing(kindServer, id, from, "mcp.json: "+id, serverPart{id: id, entry: o}, strings.Join(notes, "; "))
}

func setList(o *jsonvalue.Object, key string, list []string) {
	var values []any
	for _, text := range list {
		values = append(values, text)
	}
	if len(values) > 0 {
		o.Set(key, values)
	}
}

func setTable(o *jsonvalue.Object, key string, table map[string]string) {
	own := jsonvalue.NewObject()
	for _, name := range slices.Sorted(maps.Keys(table)) {
		own.Set(name, table[name])
	}
	if own.Len() > 0 {
		o.Set(key, own)
	}
}

// A secretHider replaces secrets in the entry of a server by variables.
type secretHider struct {
	server    string
	variables []string
}

var notInName = pattern.CompileLater(`[^A-Z0-9]+`)

// nameSecret returns a variable for a secret.
func (h *secretHider) nameSecret(words ...string) string {
	name := strings.Trim(notInName().ReplaceAllString(strings.ToUpper(strings.Join(words, "_")), "_"), "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "SERVER_" + name
	}
	if !slices.Contains(h.variables, name) {
		h.variables = append(h.variables, name)
	}
	return "${" + name + "}"
}

// notation writes references to variables as raddle does. ok is false if the value names none.
func notation(value string) (text string, ok bool) {
	if name, isReference := findReference(value); isReference {
		return "${" + name + "}", true
	}
	text = shellNotation().ReplaceAllString(otherNotation().ReplaceAllString(value, "$${$1}"), "$${$1}")
	return text, strings.Contains(text, "${") || strings.Contains(text, "{{")
}

// otherNotation are references inside of a value, as opencode and editors write them, or with a default.
var (
	otherNotation = pattern.CompileLater(`(?:\$\{env:|\{env:|\$\{)([A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?\}`)
	shellNotation = pattern.CompileLater(`\$([A-Z_][A-Z0-9_]*)\b`)
)

// hideTable returns variables or headers with references in place of secrets.
func (h *secretHider) hideTable(table map[string]string) map[string]string {
	for _, name := range slices.Sorted(maps.Keys(table)) {
		text, isReference := notation(table[name])
		kind, secret, isPair := strings.Cut(text, " ")
		switch {
		case isReference:
			table[name] = text
		case isPair && (strings.EqualFold(kind, "bearer") || strings.EqualFold(kind, "basic") || strings.EqualFold(kind, "token")) && secret != "":
			table[name] = kind + " " + h.nameSecret(h.server, name)
		case redact.IsSecretName(name) && text != "":
			table[name] = h.nameSecret(name)
		case redact.IsSecretField(name) && text != "", hasSecret(text):
			table[name] = h.nameSecret(h.server, name)
		}
	}
	return table
}

// hideArgs returns arguments with references in place of secrets.
func (h *secretHider) hideArgs(args []string) []string {
	for i := range args {
		args[i], _ = notation(args[i])
	}
	secrets := redact.FindFlagSecrets(args)
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for i, arg := range args {
		for _, secret := range secrets {
			if secret != "" && !strings.Contains(secret, "${") && strings.Contains(arg, secret) {
				args[i] = strings.ReplaceAll(args[i], secret, h.nameSecret(h.server, "SECRET"))
			}
		}
		if hasSecret(args[i]) {
			args[i] = h.nameSecret(h.server, "ARGUMENT", strconv.Itoa(i+1))
		}
	}
	return args
}

// hideAddress returns an address with a reference in place of it if it has a password or another secret.
func (h *secretHider) hideAddress(address string) string {
	text, isReference := notation(address)
	if !isReference && (redact.RedactURL(text) != text || hasSecret(text)) {
		return h.nameSecret(h.server, "URL")
	}
	return text
}

// tokenForm are the beginnings that services give their tokens, so that they are found wherever they are written.
var tokenForm = pattern.CompileLater(`\b(sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,}|` +
	`xox[abposr]-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{20,}|(AKIA|ASIA)[A-Z0-9]{12,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{6,}|` +
	`(gsk|hf|npm|pplx)_?[A-Za-z0-9-]{24,}|xai-[A-Za-z0-9]{16,})`)

// hasSecret reports whether a text has a password, or what looks like the token of a service.
func hasSecret(text string) bool {
	return tokenForm().MatchString(text) || redact.HasSecret("", text)
}
