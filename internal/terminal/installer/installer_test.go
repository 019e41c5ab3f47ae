//go:build unix

package installer_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"raddle.dev/internal/base/release"
	"raddle.dev/internal/terminal/installer"
	"raddle.dev/internal/testkit/releasetest"
	"raddle.dev/internal/testkit/testneed"
)

// needed are the programs that install.sh may use, without those that read the network and verify.
var needed = []string{"tar", "gzip", "awk", "mktemp", "uname", "rm", "mkdir", "cp", "chmod", "mv", "fold", "cat", "sha256sum"}

// A user is an empty home with a path of few programs, and a server of releases.
type user struct {
	*releasetest.Server
	t     *testing.T
	home  string
	shell []string
	env   []string
}

// newUser returns a user whose path has the needed programs and a few more.
func newUser(t *testing.T, shell []string, more ...string) *user {
	t.Helper()
	u := &user{Server: releasetest.Start(t), t: t, home: t.TempDir(), shell: shell}
	bin := t.TempDir()
	programs := append(slices.Clone(needed), more...)
	testneed.RequirePrograms(t, programs...)
	for _, name := range programs {
		if err := os.Symlink(testneed.FindProgram(name), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	u.env = []string{"HOME=" + u.home, "PATH=" + bin, "TMPDIR=" + t.TempDir()}
	return u
}

// fake returns a program that says which release it is.
func fake(version string) []byte {
	return fmt.Appendf(nil, "#!/bin/sh\necho 'raddle %s (for a test)'\n", version)
}

// install runs the script, from a pipe as people do, and returns what it says.
func (u *user) install(args ...string) (string, error) {
	u.t.Helper()
	script, err := installer.Render("install.sh", u.Address, u.Key)
	if err != nil {
		u.t.Fatal(err)
	}
	return u.run(script, args...)
}

func (u *user) run(script string, args ...string) (string, error) {
	cmd := exec.Command(u.shell[0], append(append(slices.Clone(u.shell[1:]), "-s", "--"), args...)...)
	cmd.Env = u.env
	cmd.Dir = u.home
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// list returns the files below the home and in the directory for temporary files.
func (u *user) list() string {
	u.t.Helper()
	var files []string
	for _, root := range []string{u.home, strings.TrimPrefix(u.env[2], "TMPDIR=")} {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				rel, _ := filepath.Rel(root, path)
				text, _ := os.ReadFile(path)
				files = append(files, rel+": "+strings.TrimSpace(string(text)))
			}
			return err
		})
		if err != nil {
			u.t.Fatal(err)
		}
	}
	return strings.Join(files, "\n")
}

// has fails the test unless the only file is the program of a version, or there is none if version is "".
func (u *user) has(version string) {
	u.t.Helper()
	want := ""
	if version != "" {
		want = ".local/bin/raddle: " + strings.TrimSpace(string(fake(version)))
	}
	if got := u.list(); got != want {
		u.t.Errorf("there is\n%s\ninstead of\n%s", got, want)
	}
}

// expect fails the test unless the script ends as it should and says what it should.
func (u *user) expect(ok bool, want string, args ...string) {
	u.t.Helper()
	out, err := u.install(args...)
	if (err == nil) != ok || !strings.Contains(out, want) {
		u.t.Errorf("install.sh %v: %v\n%s\nwithout %q", args, err, out, want)
	}
}

// testLife installs, updates, refuses an older version, and removes.
func testLife(u *user) {
	u.t.Helper()
	u.Publish(u.t, "v1.2.0", fake("v1.2.0"))
	u.expect(true, "raddle v1.2.0 is installed: "+u.home+"/.local/bin/raddle")
	u.has("v1.2.0")
	u.TakeRequests()
	u.expect(true, "is installed already")
	if asked := u.TakeRequests(); len(asked) != 2 {
		u.t.Errorf("it asked for %v", asked)
	}
	u.Publish(u.t, "v1.10.0-rc.1", fake("v1.10.0-rc.1"))
	u.expect(true, "raddle v1.10.0-rc.1 is installed")
	u.expect(false, "is v1.10.0-rc.1, which is newer than v1.2.0", "--version", "1.2.0")
	u.has("v1.10.0-rc.1")
	u.Publish(u.t, "v1.10.0", fake("v1.10.0"))
	u.expect(true, "raddle v1.10.0 is installed")
	u.expect(false, "next: to replace it: --replace", "--version", "v1.10.0-rc.1")
	u.expect(true, "raddle v1.2.0 is installed", "--version", "v1.2.0", "--replace")
	u.has("v1.2.0")
	for _, dir := range []string{".config", ".local/state", ".cache"} {
		if err := os.MkdirAll(filepath.Join(u.home, dir, "raddle"), 0o755); err != nil {
			u.t.Fatal(err)
		}
	}
	u.expect(true, "yours, and left: "+u.home+"/.config/raddle", "--uninstall")
	u.has("")
	if _, err := os.Stat(filepath.Join(u.home, ".cache", "raddle")); err == nil {
		u.t.Error("the cache is left")
	}
	u.expect(false, "there is no raddle of this script in", "--uninstall")
}

// install.sh installs, updates and removes, with sh and curl.
func TestInstall(t *testing.T) {
	testLife(newUser(t, []string{testneed.FindProgram("sh")}, "curl", "openssl"))
}

// install.sh needs nothing of one shell, and no curl.
func TestOptionalShells(t *testing.T) {
	testneed.RequirePrograms(t, "busybox", "dash", "wget", "bash")
	for name, shell := range map[string][]string{"busybox": {testneed.FindProgram("busybox"), "sh"}, "dash": {testneed.FindProgram("dash")}, "bash": {testneed.FindProgram("bash"), "--posix"}} {
		t.Run(name, func(t *testing.T) { testLife(newUser(t, shell, "wget", "openssl")) })
	}
}

// Without a signature, wget is not enough: it takes files of servers that nothing has verified.
func TestOptionalWget(t *testing.T) {
	u := newUser(t, []string{testneed.FindProgram("sh")}, "wget", "openssl")
	u.Address = "https://192.0.2.1/releases"
	u.expect(false, "next: install curl", "--checksum-only")
	u.has("")
}

// Nothing is installed that was not signed, or did not come whole, and the old program stays.
func TestInstallRefuses(t *testing.T) {
	archive := release.NameArchive("v1.3.0", runtime.GOOS, runtime.GOARCH)
	change := func(part string, do func([]byte) []byte) func(*user) {
		return func(u *user) {
			u.AnswerInstead(func(w http.ResponseWriter, path string, content []byte) bool {
				if !strings.HasSuffix(path, part) {
					return false
				}
				_, _ = w.Write(do(bytes.Clone(content)))
				return true
			})
		}
	}
	cut := func(part string) func(*user) {
		return func(u *user) {
			u.AnswerInstead(func(w http.ResponseWriter, path string, content []byte) bool {
				if !strings.HasSuffix(path, part) {
					return false
				}
				w.Header().Set("Content-Length", strconv.Itoa(len(content)))
				_, _ = w.Write(content[:len(content)/2])
				return true
			})
		}
	}
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	cases := []struct {
		name   string
		change func(*user)
		want   string
		args   []string
	}{
		{name: "a changed archive", change: change(archive, flip), want: "is not the file of the release"},
		{name: "a cut archive", change: cut(archive), want: "cannot be read"},
		{name: "a cut list", change: cut("checksums.txt"), want: "cannot be read"},
		{name: "a changed list", change: change("checksums.txt", flip), want: "was not signed with the key of the releases"},
		{name: "an empty list", change: change("checksums.txt", func([]byte) []byte { return nil }), want: "is empty"},
		{name: "a page in place of the signature", change: change(".sig", func([]byte) []byte { return []byte("<html>Log in</html>") }), want: "was not signed"},
		{name: "another key", change: func(u *user) { u.Key = releasetest.Start(u.t).Key }, want: "was not signed"},
		{name: "no key", change: func(u *user) { u.Key = "" }, want: "made without the key"},
		{name: "no address", change: func(u *user) { u.Address = "" }, want: "made without the address"},
		{name: "no https", change: func(u *user) { u.Address = "http://192.0.2.1/releases" }, want: "is no https address"},
		{name: "an unknown version", change: func(*user) {}, want: "cannot be read", args: []string{"--version", "9.9.9"}},
		{name: "an old list at the place of a new version", change: func(u *user) {
			for _, name := range []string{release.ListName, release.SignatureName} {
				u.Put("download/v1.4.0/"+name, u.Get("download/v1.2.0/"+name))
			}
		}, want: "the server has v1.2.0 at the place of v1.4.0", args: []string{"--version", "v1.4.0"}},
		{name: "a program that does not run", change: func(u *user) { u.Publish(u.t, "v1.4.0", []byte("#!/nonexistent/interpreter\n")) }, want: "does not run in"},
		{name: "a mistake", change: func(*user) {}, want: "unknown argument: --verson", args: []string{"--verson"}},
		{name: "a missing value", change: func(*user) {}, want: "--dir needs a value", args: []string{"--dir"}},
		{name: "no version", change: func(*user) {}, want: "is no version", args: []string{"--version", "../1"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			u := newUser(t, []string{testneed.FindProgram("sh")}, "curl", "openssl")
			u.Publish(t, "v1.2.0", fake("v1.2.0"))
			u.expect(true, "raddle v1.2.0 is installed")
			u.Publish(t, "v1.3.0", fake("v1.3.0"))
			c.change(u)
			u.expect(false, c.want, c.args...)
			u.has("v1.2.0")
		})
	}
}

// Without openssl, the user decides whether the server alone is trusted; nothing else is left out.
func TestInstallWithoutSignature(t *testing.T) {
	u := newUser(t, []string{testneed.FindProgram("sh")}, "curl")
	u.Publish(t, "v1.2.0", fake("v1.2.0"))
	u.expect(false, "next: install openssl, or trust the server alone: --checksum-only")
	u.has("")
	u.expect(true, "the signature is not verified", "--checksum-only")
	u.has("v1.2.0")
}

// What is not a release of the script stays: programs of packages, links, and builds from source.
func TestInstallKeeps(t *testing.T) {
	u := newUser(t, []string{testneed.FindProgram("sh")}, "curl", "openssl")
	u.Publish(t, "v1.2.0", fake("v1.2.0"))
	place := filepath.Join(u.home, "bin", "raddle")
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(place, "#!/bin/sh\necho 'raddle devel 0123456789ab (go)'\n")
	u.expect(false, "is no release of raddle", "--dir", "bin")
	write(place, "#!/bin/sh\necho something else\n")
	u.expect(false, "does not say that it is raddle", "--uninstall", "--dir", "bin")
	write(filepath.Join(u.home, "lib/raddle/installed-by"), "pip\npip install --upgrade raddle\n")
	for _, args := range [][]string{{"--replace"}, {"--uninstall"}} {
		u.expect(false, "was installed by pip", append(args, "--dir", "bin/")...)
	}
	link := filepath.Join(u.home, "links", "raddle")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(place, link); err != nil {
		t.Fatal(err)
	}
	u.expect(false, "is no file of its own", "--replace", "--dir", filepath.Dir(link))
	if text, err := os.ReadFile(place); err != nil || !strings.Contains(string(text), "something else") {
		t.Errorf("%q, %v", text, err)
	}
}

// The script says what is missing in the path, and writes it nowhere.
func TestInstallPath(t *testing.T) {
	u := newUser(t, []string{testneed.FindProgram("sh")}, "curl", "openssl")
	u.Publish(t, "v1.2.0", fake("v1.2.0"))
	dir := filepath.Join(u.home, "a b")
	env := u.env
	for shell, want := range map[string]string{"/bin/bash": "~/.bashrc", "/usr/bin/zsh": "~/.zshrc", "/usr/bin/fish": "fish_add_path '" + dir + "'", "": "~/.profile"} {
		u.env = append(slices.Clone(env), "SHELL="+shell)
		u.expect(true, want, "--dir", dir, "--replace")
	}
	u.env = slices.Clone(env)
	u.env[1] += ":" + dir
	if out, err := u.install("--dir", dir, "--replace"); err != nil || strings.Contains(out, "is not in your PATH") {
		t.Errorf("%v\n%s", err, out)
	}
	if got := u.list(); got != "a b/raddle: "+strings.TrimSpace(string(fake("v1.2.0"))) {
		t.Error(got)
	}
}

// A part of the script does nothing, wherever the connection ends.
func TestPartOfScript(t *testing.T) {
	u := newUser(t, []string{testneed.FindProgram("sh")}, "curl", "openssl")
	u.Publish(t, "v1.2.0", fake("v1.2.0"))
	script, err := installer.Render("install.sh", u.Address, u.Key)
	if err != nil {
		t.Fatal(err)
	}
	whole := strings.TrimRight(script, "\n")
	for length := len(whole) - 1; length > len(whole)-400; length -= 7 {
		if out, err := u.run(whole[:length], "--uninstall"); err == nil && !strings.HasSuffix(whole[:length], "\n") && strings.Contains(out, "raddle") {
			t.Errorf("without its last %d bytes it says %s", len(whole)-length, out)
		}
	}
	for length := 0; length < len(whole); length += 1009 {
		_, _ = u.run(whole[:length]) // whatever it says
	}
	u.has("")
	if asked := u.TakeRequests(); len(asked) > 0 {
		t.Errorf("it asked for %v", asked)
	}
}

// Rosetta and machines without a release are recognized by what the system says.
func TestInstallPlatform(t *testing.T) {
	for _, c := range []struct{ system, machine, translated, want string }{
		{"Darwin", "x86_64", "1", "darwin/arm64"}, {"Darwin", "x86_64", "0", "darwin/amd64"}, {"Darwin", "arm64", "", "darwin/arm64"},
		{"Linux", "aarch64", "", "linux/arm64"}, {"Linux", "x86_64", "", "linux/amd64"},
		{"Linux", "armv7l", "", "no release for armv7l"}, {"FreeBSD", "amd64", "", "no release for FreeBSD"}, {"MINGW64_NT-10.0", "x86_64", "", "use install.ps1"},
	} {
		t.Run(c.system+" "+c.machine+" "+c.translated, func(t *testing.T) {
			u := newUser(t, []string{testneed.FindProgram("sh")}, "curl", "openssl")
			u.Publish(t, "v1.2.0", fake("v1.2.0"))
			bin := t.TempDir()
			for name, text := range map[string]string{
				"uname":  "#!/bin/sh\ncase $1 in -s) echo '" + c.system + "';; -m) echo '" + c.machine + "';; esac\n",
				"sysctl": "#!/bin/sh\n[ -n '" + c.translated + "' ] && echo '" + c.translated + "'\n",
			} {
				if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			u.env[1] = "PATH=" + bin + ":" + strings.TrimPrefix(u.env[1], "PATH=")
			if out, _ := u.install(); !strings.Contains(out, c.want) {
				t.Errorf("%s\nwithout %q", out, c.want)
			}
		})
	}
}

// What make release writes into the scripts cannot end the quotes there.
func TestRender(t *testing.T) {
	for _, name := range installer.Names {
		text, err := installer.Render(name, "https://example.com/r .example.net", "MFkw+/a=")
		if err != nil || strings.Count(text, "'https://example.com/r .example.net'") != 1 || strings.Count(text, "'MFkw+/a='") != 1 {
			t.Errorf("%s: %v", name, err)
		}
		for _, bad := range []string{"https://example.com/'", "https://example.com/\n", "$(x)", "`x`"} {
			if _, err := installer.Render(name, bad, ""); err == nil {
				t.Errorf("%s has %q in it", name, bad)
			}
		}
	}
}
