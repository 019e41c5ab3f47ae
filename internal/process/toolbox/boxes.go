package toolbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"raddle.dev/internal/base/box"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/proc"
	"raddle.dev/internal/base/tempdir"
	"raddle.dev/tool/permission"
)

// boxesDir is the directory of boxes among raddle's own files. It lies outside of the directories for temporary files,
// which boxes cover with layers.
const boxesDir = "boxes"

// asideDir is the directory among raddle's own files for what commands did to files that run later, where the box has
// no layer.
const asideDir = "aside"

// A runBox is the box of a run, which is made when a command needs it.
type runBox struct {
	once   sync.Once
	box    *box.Box
	err    error
	remove func()
}

// OpenBox returns the box of the run for commands that nothing else lets run. The first call makes it, and tries it.
// Close removes it.
func (tb *Toolbox) OpenBox() (*box.Box, error) {
	b := &tb.boxed
	b.once.Do(func() {
		tb.network.policy = tb.policy
		tb.network.tool = "execute_command"
		b.box, b.remove, b.err = tb.makeBox(&tb.network, false)
	})
	return b.box, b.err
}

// serverName is the name by which rules know a server in a box when it connects to a host. No rule for a tool has it:
// only rules about any host open the network.
const serverName = "(server)"

// RequireBox returns an error that says why no box holds, for what must not do without one.
func (tb *Toolbox) RequireBox() error {
	if _, err := tb.OpenBox(); err != nil {
		return &failure.Error{
			Kind: failure.Invalid,
			Msg:  "no box holds here",
			Err:  err,
			Next: "raddle doctor says what works; without a box, commands of agents ask: --mode edits",
		}
	}
	return nil
}

// ConfineScript runs a script that no person consented to in the box, without secrets in its environment. Without a box
// it fails: it must not run elsewhere.
func (tb *Toolbox) ConfineScript(ctx context.Context, c proc.Command) (proc.Result, error) {
	b, err := tb.OpenBox()
	if err != nil {
		return proc.Result{ExitCode: -1}, err
	}
	c.Env = slices.DeleteFunc(slices.Clone(c.Env), func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		return tb.shared.isSecretVariable(name, value)
	})
	res, _, err := b.Run(ctx, c, nil)
	return res, err
}

// runConfined runs a command in the box if one holds, and as it is otherwise.
func (tb *Toolbox) runConfined(ctx context.Context, c proc.Command) (proc.Result, error) {
	b, err := tb.OpenBox()
	if err != nil {
		return proc.Run(ctx, c)
	}
	res, _, err := b.Run(ctx, c, nil)
	return res, err
}

// HoldsBox reports whether commands of the run can run in a box.
func (tb *Toolbox) HoldsBox() bool {
	_, err := tb.OpenBox()
	return err == nil
}

// errBoxOff says that the user wants no box.
var errBoxOff = errors.New("the box is switched off (box: false, or --no-box)")

// errBoxClosed says that the run has ended.
var errBoxClosed = errors.New("the run has ended, and its box with it")

// makeBox makes a box with a network, whose private files lie among raddle's own unless the workspace holds them.
func (tb *Toolbox) makeBox(network *boxNetwork, readOnly bool) (b *box.Box, remove func(), err error) {
	if !tb.shared.UsesBox() {
		return nil, nil, errBoxOff
	}
	if runtime.GOOS != "linux" {
		return nil, nil, box.ErrNone
	}
	root := filepath.Join(tb.shared.Dirs.State, boxesDir)
	workspace, err := filepath.EvalSymlinks(tb.workspace)
	if err == nil && isWithin(workspace, root) {
		root = os.TempDir()
	} else if err == nil {
		err = os.MkdirAll(root, 0o700)
	}
	if err != nil {
		return nil, nil, err
	}
	tempdir.RemoveStaleIn(root)
	private, remove, err := tempdir.NewIn(root, "box")
	if err != nil {
		return nil, nil, err
	}
	protect := func(path, made string) string {
		policy := tb.policy
		policy.Code = tb.codePaths()
		return policy.BoxReason(path, made)
	}
	if tb.findHidden(); tb.searchErr != nil {
		remove()
		return nil, nil, tb.searchErr
	}
	b, err = box.New(box.Spec{
		Serve:     network.serveProxy,
		Variables: network.listVariables(),
		Aside:     filepath.Join(tb.shared.Dirs.State, asideDir),
		ReadOnly:  readOnly,
		Workspace: tb.workspace,
		Private:   private,
		Protected: protect,
		Layers:    tb.boxLayers(),
		Hidden:    tb.hiddenPaths,
	})
	if err != nil {
		remove()
		return nil, nil, err
	}
	return b, remove, nil
}

// UsesBox reports whether the user wants commands to run in a box where one holds.
func (s *Shared) UsesBox() bool { return !s.NoBox && !s.Config.NoBox }

// permissionBox returns the box as decisions about calls see it; nil: the user wants none.
func (tb *Toolbox) permissionBox() *permission.Box {
	if !tb.shared.UsesBox() {
		return nil
	}
	return &permission.Box{Holds: tb.HoldsBox, Hides: tb.hidesInBox}
}

// toolCaches are the directories below the home directory in which build tools keep what they can make or fetch again.
var toolCaches = []string{
	".cache", "Library/Caches", "go/pkg", ".cargo/registry", ".cargo/git", ".rustup/tmp", ".npm", ".yarn", ".pnpm-store", ".local/share/pnpm", ".bun/install", ".m2", ".gradle", ".ivy2", ".sbt",
	".nuget", ".gem", ".bundle", ".composer/cache", ".hex", ".mix", ".stack", ".cabal", ".ccache", ".deno", ".local/share/uv", ".conda/pkgs", ".node-gyp", ".matplotlib", ".ipython", ".jupyter",
	".config/go", ".config/configstore", ".config/matplotlib",
}

// boxLayers returns the directories that commands in the box may write for themselves: those for temporary files, and
// caches of build tools.
func (tb *Toolbox) boxLayers() (dirs []string) {
	candidates := []string{"/tmp", "/var/tmp"}
	if home := tb.shared.Dirs.Home; home != "" {
		for _, name := range toolCaches {
			candidates = append(candidates, filepath.Join(home, name))
		}
	}
	for _, entry := range []string{"GOCACHE", "GOMODCACHE", "CARGO_HOME", "npm_config_cache", "PIP_CACHE_DIR", "XDG_CACHE_HOME", "GRADLE_USER_HOME", "UV_CACHE_DIR"} {
		candidates = append(candidates, tb.shared.env.Get(entry))
	}
	for _, dir := range candidates {
		info, err := os.Stat(dir)
		if filepath.IsAbs(dir) && err == nil && info.IsDir() && !isWithin(tb.workspace, dir) {
			dirs = append(dirs, filepath.Clean(dir))
		}
	}
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	var tops []string
	for _, dir := range dirs {
		if !slices.ContainsFunc(tops, func(top string) bool { return isWithin(top, dir) }) {
			tops = append(tops, dir)
		}
	}
	return tops
}

// secretPlaces are files and directories below the home directory that hold keys, passwords, sessions and histories.
var secretPlaces = []string{
	".ssh", ".aws", ".azure", ".config/gcloud", ".kube", ".gnupg", ".docker", ".config/containers", ".oci", ".terraform.d", ".config/gh", ".config/glab-cli", ".config/hub", ".config/op", ".password-store",
	".local/share/keyrings", ".local/share/kwalletd", "Library/Keychains", "Library/Cookies", ".mozilla", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge",
	".config/vivaldi", ".config/opera", "Library/Application Support/Google/Chrome", "Library/Application Support/Firefox", ".thunderbird", ".config/Slack", ".config/discord", ".config/Signal",
	".claude", ".codex", ".gemini", ".config/github-copilot", ".config/openai", ".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties",
	".gem/credentials", ".nuget/NuGet", ".composer/auth.json", ".config/rclone", ".config/pip", ".config/pypoetry", ".config/git/credentials", ".local/share/raddle", ".subversion/auth", ".vault-token", ".bitcoin", ".ethereum",
	".config/age", ".config/sops", ".config/doctl", ".config/heroku", ".config/fly", ".fly", ".config/netlify", ".config/configstore", ".config/hcloud", ".config/1Password", ".electrum",
}

// plainFiles are hidden files directly below the home directory that programs cannot do without, and that hold no
// secrets as a rule.
var plainFiles = []string{".profile", ".bashrc", ".bash_profile", ".zshrc", ".zshenv", ".zprofile", ".inputrc", ".tool-versions", ".python-version", ".nvmrc", ".editorconfig", ".gitignore", ".gitignore_global"}

// systemSecrets are files and directories of the system that hold secrets or sockets.
var systemSecrets = []string{"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private", "/etc/krb5.keytab", "/run/secrets", "/run/user", "/run/credentials",
	"/var/run/secrets", "/var/lib/docker", "/var/lib/containerd", "/var/lib/kubelet", "/run/docker.sock", "/run/containerd", "/run/dbus", "/boot", "/var/spool", "/var/mail", "/var/lib/postgresql", "/var/lib/mysql", "/var/log/journal"}

// hiddenPaths returns what commands in the box see empty: secrets of the user and of the system, raddle's own files,
// files of the workspace that hold variables, and what rules deny.
func (tb *Toolbox) hiddenPaths() (paths []string) {
	home := tb.shared.Dirs.Home
	d := tb.shared.Dirs
	for _, path := range systemSecrets {
		if !isWithin(path, tb.workspace) && !isWithin(path, home) {
			paths = append(paths, path)
		}
	}
	if keys, err := filepath.Glob("/etc/ssh/*_key"); err == nil {
		paths = append(paths, keys...)
	}
	for _, home := range tb.listHomes() {
		for _, name := range secretPlaces {
			if path := filepath.Join(home, name); !isWithin(path, tb.workspace) {
				paths = append(paths, path)
			}
		}
		paths = append(paths, hiddenFilesIn(home)...)
	}
	paths = append(paths, filesIn(d.Config, nil)...)
	paths = append(paths, filesIn(d.State, []string{boxesDir})...)
	return append(paths, tb.findHidden()...)
}

// listHomes returns the home directories of the user: the one of the environment, and the one that the system knows.
func (tb *Toolbox) listHomes() (dirs []string) {
	if home := tb.shared.Dirs.Home; home != "" {
		dirs = append(dirs, home)
	}
	if u, err := user.Current(); err == nil && filepath.IsAbs(u.HomeDir) && !slices.Contains(dirs, u.HomeDir) && !isWithin(u.HomeDir, tb.workspace) {
		dirs = append(dirs, u.HomeDir)
	}
	return dirs
}

// hiddenFilesIn returns the hidden files directly in the home directory, except harmless ones.
func hiddenFilesIn(home string) (paths []string) {
	entries, _ := os.ReadDir(home)
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, ".") || e.IsDir() || slices.Contains(plainFiles, name) || name == ".gitconfig" && isPlainSettings(filepath.Join(home, name)) {
			continue
		}
		paths = append(paths, filepath.Join(home, name))
	}
	return paths
}

// isPlainSettings reports whether a file of git's settings has no passwords and tokens in it.
func isPlainSettings(path string) bool {
	text, err := plainfile.Read(path, 1<<20)
	if err != nil {
		return false
	}
	for line := range strings.Lines(strings.ToLower(string(text))) {
		if strings.Contains(line, "://") && strings.Contains(line, "@") || slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(line, word) }) {
			return false
		}
	}
	return true
}

// secretWords are words of settings that hold secrets.
var secretWords = []string{"extraheader", "password", "token", "secret", "authorization"}

// filesIn returns the entries of one of raddle's directories, except some names. Directories of the configuration, such
// as agents and skills, are no secrets.
func filesIn(dir string, except []string) (paths []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !slices.Contains(except, e.Name()) && (!e.IsDir() || except != nil) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// maxSearched is how many entries are looked at for files that hold secrets or that rules do not let tools read.
const maxSearched = 500_000

// errTooMany says that the search for what must be hidden ended before it had seen everything.
var errTooMany = fmt.Errorf("the workspace, or a directory that a rule about reading names, has more than %d entries: what must stay hidden cannot be found", maxSearched)

// findHidden returns the files of the workspace that hold variables (.env), and what rules do not let tools read,
// wherever it is. It looks once per run: a file of variables that a command writes later is the command's own.
func (tb *Toolbox) findHidden() []string {
	tb.searchOnce.Do(func() {
		hidden := tb.policy.HiddenFilter("fs_cat")
		left := maxSearched
		for _, root := range append([]string{tb.workspace}, tb.policy.PlacesOutside("fs_cat")...) {
			_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
				if left--; err != nil {
					return fs.SkipDir
				}
				if left < 0 {
					tb.searchErr = errTooMany
					return fs.SkipAll
				}
				if root != tb.workspace && (path == tb.workspace || path == "/proc" || path == "/sys") {
					return fs.SkipDir
				}
				if path != tb.workspace && (root == tb.workspace && isVariablesFile(e) || hidden(path)) {
					tb.searched = append(tb.searched, path)
					if e.IsDir() {
						return fs.SkipDir
					}
				}
				return nil
			})
		}
	})
	return tb.searched
}

// isVariablesFile reports whether a file has the name of files with variables, which often are keys. Examples are none.
func isVariablesFile(e fs.DirEntry) bool {
	name := e.Name()
	if e.IsDir() || name != ".env" && !strings.HasPrefix(name, ".env.") {
		return false
	}
	return !slices.Contains([]string{".example", ".sample", ".template", ".dist", ".defaults"}, filepath.Ext(name))
}

// hidesInBox reports whether commands in the box see a path empty.
func (tb *Toolbox) hidesInBox(path string) bool {
	return slices.ContainsFunc(tb.hiddenPaths(), func(hidden string) bool {
		real, err := filepath.EvalSymlinks(hidden)
		return isWithin(hidden, path) || err == nil && isWithin(real, path)
	})
}

// isWithin reports whether a path is a directory or lies in it. Both are absolute.
func isWithin(dir, path string) bool {
	relative, err := filepath.Rel(dir, path)
	return dir != "" && err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator))
}

// ExplainBox returns what the box of the run allows, line by line.
func (tb *Toolbox) ExplainBox() (lines []string) {
	short := tb.shared.Dirs.ShortPath
	list := func(paths []string) string {
		var there []string
		for _, path := range paths {
			if _, err := os.Lstat(path); err == nil {
				there = append(there, short(path))
			}
		}
		return strings.Join(there, ", ")
	}
	lines = []string{
		"reads:     everything that you may read, except: " + list(tb.hiddenPaths()),
		"writes:    " + short(tb.workspace) + ", except files that run later, such as .git/config, .git/hooks, .vscode, AGENTS.md",
	}
	b, err := tb.OpenBox()
	if err != nil {
		return append(lines, "holds:     no, "+err.Error())
	}
	held := b.DescribeBox()
	if held.Layer {
		lines = append(lines, "discards:  what is written in "+list(tb.boxLayers())+" and in $TMPDIR")
	} else {
		lines = append(lines, "discards:  what is written in $TMPDIR, which holds the caches of build tools, too")
	}
	if held.Network {
		lines = append(lines, "network:   the hosts that rules allow, through a proxy (any host(example.com)); servers that a command starts itself are reached on the loopback interface")
	} else {
		lines = append(lines, "network:   none")
	}
	lines = append(lines,
		"variables: those of your environment without secrets",
		"processes: only its own; all of them end with the command",
		"held by:   "+held.Way,
	)
	for _, missing := range held.Missing {
		lines = append(lines, "not held:  "+missing)
	}
	return lines
}
