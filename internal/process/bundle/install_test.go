package bundle

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/testfile"
)

func install(t *testing.T, dir string, o Options) map[string]Outcome {
	t.Helper()
	list, err := Install(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]Outcome{}
	for _, out := range list {
		outcomes[out.Agent] = out
	}
	return outcomes
}

func get(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tree returns all files of a directory with their texts, without the manifest.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if rel, _ := filepath.Rel(dir, path); rel != manifestFile {
			found[filepath.ToSlash(rel)] = get(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// bundled is the content of a directory when everything is installed.
func bundled() map[string]string {
	all := map[string]string{}
	for _, unit := range unitNames() {
		for _, f := range listFiles(unit) {
			all[unit+"/"+f.name] = string(f.text)
		}
	}
	return all
}

func TestInstall(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "agents")
	if IsInstalled(dir) {
		t.Error("nothing is installed yet")
	}
	outcomes := install(t, dir, Options{})
	if !IsInstalled(dir) || len(outcomes) != len(Names()) {
		t.Errorf("outcomes %v", outcomes)
	}
	for _, name := range Names() {
		if !outcomes[name].New {
			t.Errorf("%s: %+v", name, outcomes[name])
		}
	}
	if diff := cmp.Diff(bundled(), tree(t, dir)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, want := range map[string]fs.FileMode{"coder/tools.sh": 0o755, "demo/tools.py": 0o755, "coder/config.yaml": 0o644} {
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	for name, out := range install(t, dir, Options{}) {
		if diff := cmp.Diff(Outcome{Agent: name}, out); diff != "" {
			t.Errorf("a second time, %s (-want +got):\n%s", name, diff)
		}
	}
}

// The user's files stay, in every state that a directory can have.
func TestInstallKeepsWhatIsTheUsers(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFile(t, filepath.Join(dir, "coder", "graph.yaml"), "mine")
	testfile.WriteFile(t, filepath.Join(dir, "sql", "config.yaml"), "mine")
	testfile.WriteFile(t, filepath.Join(dir, "oracle", "notes.txt"), "mine")
	testfile.WriteFile(t, filepath.Join(dir, ".shared", "utils.sh"), "mine")
	for range 2 {
		outcomes := install(t, dir, Options{Force: true})
		for _, name := range []string{"coder", "sql", "oracle"} {
			if !outcomes[name].Foreign {
				t.Errorf("%s: %+v", name, outcomes[name])
			}
		}
	}
	want := bundled()
	for name := range want {
		if unit, _, _ := strings.Cut(name, "/"); slices.Contains([]string{"coder", "sql", "oracle"}, unit) {
			delete(want, name)
		}
	}
	for _, name := range []string{"coder/graph.yaml", "sql/config.yaml", "oracle/notes.txt", ".shared/utils.sh"} {
		want[name] = "mine"
	}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// In a directory that an earlier version has installed, files that the user has not
// changed get the new version, and files that the user has changed stay.
func TestInstallUpdates(t *testing.T) {
	dir := t.TempDir()
	install(t, dir, Options{Agents: []string{"coder"}})
	m, err := readManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	older := func(name, text string) {
		testfile.WriteFile(t, filepath.Join(dir, name), text)
		m.Files[name] = computeDigest([]byte(text))
	}
	older("coder/config.yaml", "as it was")
	older("coder/gone.sh", "not needed any more")
	older("coder/gone.py", "not needed any more")
	older("coder/tools.sh", "as it was")
	if err := m.write(dir); err != nil {
		t.Fatal(err)
	}
	testfile.WriteFile(t, filepath.Join(dir, "coder/tools.sh"), "mine")
	testfile.WriteFile(t, filepath.Join(dir, "coder/gone.py"), "mine")
	want := Outcome{Agent: "coder", Written: []string{"config.yaml"}, Kept: []string{"tools.sh"}, Removed: []string{"gone.sh"}}
	if diff := cmp.Diff(want, install(t, dir, Options{Agents: []string{"coder"}})["coder"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want = Outcome{Agent: "coder", Saved: []string{"tools.sh"}}
	if diff := cmp.Diff(want, install(t, dir, Options{Force: true})["coder"]); diff != "" {
		t.Errorf("by force (-want +got):\n%s", diff)
	}
	all := bundled()
	all["coder/tools.sh.bak"], all["coder/gone.py"] = "mine", "mine"
	if diff := cmp.Diff(all, tree(t, dir)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A link that replaces a file belongs to the user, and a manifest that names files
// elsewhere does not remove them.
func TestInstallFollowsNoLinks(t *testing.T) {
	dir := t.TempDir()
	install(t, dir, Options{Agents: []string{"coder"}})
	outside := filepath.Join(t.TempDir(), "tools.sh")
	testfile.WriteFile(t, outside, string(listFiles("coder")[1].text))
	link := filepath.Join(dir, "coder", "tools.sh")
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, link); err != nil {
		t.Skip("no links on this system: ", err)
	}
	testfile.WriteFile(t, filepath.Join(dir, "mine.txt"), "mine")
	m, err := readManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Files["coder/../mine.txt"] = computeDigest([]byte("mine"))
	if err := m.write(dir); err != nil {
		t.Fatal(err)
	}
	if out := install(t, dir, Options{})["coder"]; !slices.Equal(out.Kept, []string{"tools.sh"}) {
		t.Errorf("%+v", out)
	}
	install(t, dir, Options{Force: true})
	if info, err := os.Lstat(link); err != nil || !info.Mode().IsRegular() || get(t, outside) == "" {
		t.Errorf("%v %v", info, err)
	}
	if get(t, filepath.Join(dir, "mine.txt")) != "mine" {
		t.Error("another file was removed")
	}
}

// Many concurrent installations leave what one would have left, and none of them ever
// sees an incomplete agent.
func TestInstallAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "agents")
	var all sync.WaitGroup
	failed := make(chan error, 8)
	for range cap(failed) {
		all.Go(func() {
			if _, err := Install(dir, Options{}); err != nil {
				failed <- err
				return
			}
			for name, want := range bundled() {
				if got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))); err != nil || string(got) != want {
					failed <- fmt.Errorf("%s: %w, %d bytes", name, err, len(got))
					return
				}
			}
		})
	}
	all.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	if diff := cmp.Diff(bundled(), tree(t, dir)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	m, err := readManifest(dir)
	if err != nil || len(m.Files) != len(bundled()) {
		t.Errorf("%d files in the manifest, %v", len(m.Files), err)
	}
}

// A later installation removes what a killed one has left, but not what another one
// is writing.
func TestInstallTidiesUp(t *testing.T) {
	dir := t.TempDir()
	install(t, dir, Options{Agents: []string{"coder"}})
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{".installing-1/coder/config.yaml", "coder/.installing-2", ".installing-3/x"} {
		testfile.WriteFile(t, filepath.Join(dir, filepath.FromSlash(name)), "half")
	}
	for _, name := range []string{".installing-1", "coder/.installing-2"} {
		if err := os.Chtimes(filepath.Join(dir, filepath.FromSlash(name)), old, old); err != nil {
			t.Fatal(err)
		}
	}
	install(t, dir, Options{})
	want := bundled()
	want[".installing-3/x"] = "half"
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestInstallRefuses(t *testing.T) {
	if _, err := Install(t.TempDir(), Options{Agents: []string{"coder", "shared", ".shared"}}); err == nil || err.Error() != `no agent "shared" comes with raddle` {
		t.Errorf("got %v", err)
	}
	dir := t.TempDir()
	testfile.WriteFile(t, filepath.Join(dir, manifestFile), "{")
	if _, err := Install(dir, Options{}); err == nil || !strings.Contains(err.Error(), manifestFile) {
		t.Errorf("got %v", err)
	}
	testfile.WriteFile(t, filepath.Join(dir, "file"), "")
	if _, err := Install(filepath.Join(dir, "file", "agents"), Options{}); err == nil {
		t.Error("a directory below a file was made")
	}
}
