package script

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/gitrepo"
	"raddle.dev/internal/base/interpreter"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/tool/declare"
)

// An environment is a set of variables.
type environment struct{ vars map[string]string }

func (e *environment) set(name, value string) { e.vars[name] = value }

// setDefault sets a variable that has no value yet.
func (e *environment) setDefault(name, value string) {
	if e.vars[name] == "" {
		e.vars[name] = value
	}
}

// sortedPairs returns the environment as a process takes it, sorted.
func (e *environment) sortedPairs() []string {
	all := make([]string, 0, len(e.vars))
	for name, value := range e.vars {
		all = append(all, name+"="+value)
	}
	sort.Strings(all)
	return all
}

// loadDotenv reads a file as [ReadDotenv] does. What is set already stays. A file that is
// not trusted sets no variable that decides what code programs run.
// root is the directory that the file must not be outside of; "": there is none.
func (e *environment) loadDotenv(root, path string, trusted bool) {
	vars, _ := ReadDotenv(root, path) // CheckDotenvs reports the faults
	for name, value := range vars {
		if _, set := e.vars[name]; !set && (trusted || !interpreter.SetsCode(name)) {
			e.vars[name] = value
		}
	}
}

// A DotenvFault is a line of a file of variables that sets none although it looks as if it did.
type DotenvFault struct {
	Path string
	Line int
	Text string // what is wrong; it quotes no value
}

// ReadDotenv reads a file of NAME=value lines: blank lines, comments and a leading
// "export" are skipped, and nothing is evaluated. Values may be in quotes, and then go over several lines;
// double quotes have the usual escapes. # after a blank begins a comment. Of a name that occurs twice the first value
// counts. A file that cannot
// be read, of more than 1 MiB, or outside of the directory root, has no variables. An empty
// root has no outside.
func ReadDotenv(root, path string) (vars map[string]string, faults []DotenvFault) {
	const largest = 1 << 20
	read := func() ([]byte, error) { return plainfile.ReadBeneath(root, path, largest) }
	if root == "" {
		read = func() ([]byte, error) { return plainfile.Read(path, largest) }
	}
	text, err := read()
	if err != nil {
		return nil, nil
	}
	file := environ.ParseDotenv(text)
	for _, f := range file.Faults {
		faults = append(faults, DotenvFault{path, f.Line, f.Text})
	}
	return file.Vars, faults
}

// promised are the variables that belong to one call.
var promised = []string{
	"LLM_TOOL_NAME", "LLM_TOOL_CACHE_DIR", "LLM_TOOL_RAW_JSON", dataFileVariable, "LLM_PROMPT_UTILS_FILE", "LLM_AGENT_NAME", "LLM_AGENT_FUNC",
	"LLM_AGENT_ROOT_DIR", "LLM_AGENT_CACHE_DIR", "LLM_AGENT_RAW_JSON", "RADDLE_IDEMPOTENCY_KEY",
}

// buildEnvironment is what the call's process sees.
func (r *scriptCall) buildEnvironment() *environment {
	h := r.host
	e := &environment{vars: map[string]string{}}
	inherited, _ := interpreter.FilterEnvironment(h.Env, h.workspaceDir(), h.Packages)
	for _, pair := range inherited {
		name, value, ok := environ.SplitPair(pair)
		if ok && !strings.HasPrefix(environ.FoldName(name), environ.FoldName("argc_")) && !r.withholds(name, value) {
			e.vars[environ.FoldName(name)] = value
		}
	}
	for _, name := range promised {
		delete(e.vars, name) // of the tool that has started us, if one has
	}
	r.readDotenvs(e)
	r.setToolVariables(e)
	if t := e.vars["TERM"]; t == "" || t == "dumb" {
		e.set("TERM", "xterm-256color") // tput fails without one that it knows
	}
	e.set("CLICOLOR_FORCE", "1")
	e.set("FORCE_COLOR", "1")
	// The caller asks for permission before it runs a tool: if the script asks
	// again, there is no person to answer.
	e.setDefault("AUTO_CONFIRM", "true")
	if r.call.Key != "" {
		e.set("RADDLE_IDEMPOTENCY_KEY", r.call.Key)
	}
	return e
}

// childEnvironment returns the environment as the process takes it. git takes no programs from a repository in it if
// the call runs a command that no one allowed. In a box there are no secrets in it, also not those of files.
func (r *scriptCall) childEnvironment(e *environment) []string {
	pairs := e.sortedPairs()
	if secret := r.host.Secret; r.boxed != nil && secret != nil {
		pairs = slices.DeleteFunc(pairs, func(pair string) bool {
			name, value, _ := environ.SplitPair(pair)
			return secret(name, value)
		})
	}
	if p := r.call.Permit; p != nil && p.Unasked {
		return gitrepo.HardenEnvironment(pairs)
	}
	return pairs
}

// withholds reports whether the call does not get a variable of its surroundings: a secret, for a command that no one
// allowed.
func (r *scriptCall) withholds(name, value string) bool {
	p := r.call.Permit
	return p != nil && !p.Allowed && r.host.Secret != nil && r.host.Secret(name, value)
}

// readDotenvs reads the files of variables, the nearest first.
func (r *scriptCall) readDotenvs(e *environment) {
	h := r.host
	if c := r.Command; c != nil && c.Dotenv != "" {
		path := c.Dotenv
		root := ""
		if !filepath.IsAbs(path) {
			root = h.workspaceDir()
			path = filepath.Join(root, path)
		}
		e.loadDotenv(root, path, false)
	}
	for _, f := range h.listDotenvs() {
		e.loadDotenv(f.root, f.path, true)
	}
}

// A dotenvFile is a file of variables, and the directory that it must not be outside of; "": there is none.
type dotenvFile struct{ root, path string }

// listDotenvs returns the files of variables that all tools of the host get, the nearest first.
func (h *Host) listDotenvs() (files []dotenvFile) {
	if h.Agent != nil {
		home := cmp.Or(h.Agent.Home, h.Agent.Dir)
		files = append(files, dotenvFile{home, filepath.Join(home, ".env")})
	}
	for _, dir := range []string{h.Functions, h.Config} {
		if dir != "" {
			files = append(files, dotenvFile{"", filepath.Join(dir, ".env")})
		}
	}
	return files
}

// CheckDotenvs returns what is wrong in the files of variables that all tools of the host get.
func (h *Host) CheckDotenvs() (faults []DotenvFault) {
	for _, f := range h.listDotenvs() {
		_, found := ReadDotenv(f.root, f.path)
		faults = append(faults, found...)
	}
	return faults
}

// inlineLimit returns the length of the longest argument text, in bytes, that fits
// into one variable of a process. Linux allows 128 KiB for the name and the value,
// Windows 32,767 characters.
func inlineLimit(goos string) int {
	if goos == "windows" {
		return 30 << 10
	}
	return 120 << 10
}

// dataFileVariable names the file that has the arguments of a call, of any length.
const dataFileVariable = "LLM_TOOL_DATA_FILE"

// refuseTooLarge returns what is wrong if the arguments do not fit into the variable that
// the script reads them from. Scripts whose text does not name that variable get their
// arguments in another way, and so do those that name LLM_TOOL_DATA_FILE.
func (r *scriptCall) refuseTooLarge() string {
	limit := inlineLimit(runtime.GOOS)
	if len(r.call.Args) <= limit {
		return ""
	}
	text, err := plainfile.Read(r.file, largestScript)
	if err != nil || !bytes.Contains(text, []byte("_RAW_JSON")) || bytes.Contains(text, []byte(dataFileVariable)) {
		return ""
	}
	return fmt.Sprintf("error: the arguments have %d bytes; %s takes at most %d. Nothing was run. Pass less at a time: split the text over several calls, or write a large text with another tool.",
		len(r.call.Args), r.Name, limit)
}

// setToolVariables sets the variables that tools are promised.
func (r *scriptCall) setToolVariables(e *environment) {
	h := r.host
	stem := strings.TrimSuffix(filepath.Base(r.file), filepath.Ext(r.file))
	base := h.Functions
	raw := "LLM_TOOL_RAW_JSON"
	if h.Agent != nil {
		base = h.Agent.Dir
		for name, value := range h.Agent.Variables {
			e.set("LLM_AGENT_VAR_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_")), value)
		}
	}
	if r.own {
		raw = "LLM_AGENT_RAW_JSON"
		e.set("LLM_ROOT_DIR", h.Config)
		e.set("LLM_AGENT_NAME", h.Agent.Name)
		e.set("LLM_AGENT_FUNC", r.Name)
		e.set("LLM_AGENT_ROOT_DIR", h.Agent.Dir)
		e.set("LLM_AGENT_CACHE_DIR", filepath.Join(h.Config, "cache", h.Agent.Name))
	} else {
		e.set("LLM_ROOT_DIR", base)
		e.set("LLM_TOOL_NAME", stem)
		e.set("LLM_TOOL_CACHE_DIR", filepath.Join(base, "cache", stem))
	}
	if root := r.utilsRoot(e.vars["LLM_ROOT_DIR"]); root != "" {
		e.set("LLM_ROOT_DIR", root)
	}
	e.set("LLM_OUTPUT", r.callPath("output"))
	if r.language == declare.LanguageBash {
		e.set("LLM_PROMPT_UTILS_FILE", cmp.Or(userHelpers(h.Functions), r.callPath("prompt-utils.sh")))
	}
	e.set(dataFileVariable, r.callPath("data.json"))
	if len(r.call.Args) <= inlineLimit(runtime.GOOS) {
		e.set(raw, string(r.call.Args))
	}
	e.set("PATH", environ.PrependDir(filepath.Join(base, "bin"), e.vars["PATH"]))
}

// utilsRoot returns the root of a collection of tools laid out like llm-functions, for a
// script that calls $LLM_ROOT_DIR/utils/...: the first directory around it that has
// utils. It is empty where root has one, or no directory does.
func (r *scriptCall) utilsRoot(root string) string {
	text, err := plainfile.Read(r.file, largestScript)
	if err != nil || !bytes.Contains(text, []byte("/utils/")) || isDir(filepath.Join(root, "utils")) {
		return ""
	}
	var around []string
	if agent := r.host.Agent; agent != nil && filepath.Base(filepath.Dir(agent.Dir)) == "agents" {
		around = append(around, filepath.Dir(filepath.Dir(agent.Dir)))
	}
	for _, dir := range append([]string{r.host.Functions}, around...) {
		if dir != "" && isDir(filepath.Join(dir, "utils")) {
			return dir
		}
	}
	return ""
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
