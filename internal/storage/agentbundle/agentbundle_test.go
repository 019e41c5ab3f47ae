package agentbundle

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/redact"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/store/sqlite"
)

// writeAgent writes the files of an agent, and returns its directory.
func writeAgent(t *testing.T, files map[string]string) Dir {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "helper")
	testfile.WriteFiles(t, dir, files)
	return Dir{Name: "helper", Path: dir}
}

func packFiles(t *testing.T, files map[string]string) *Bundle {
	t.Helper()
	b, err := Pack([]Dir{writeAgent(t, files)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func pathsOf(b *Bundle) (paths []string) {
	for _, f := range b.Files {
		paths = append(paths, f.Path)
	}
	return paths
}

// A bundle that was packed on one machine is the same in the directory that another one has written, byte by byte.
func TestRoundTrip(t *testing.T) {
	large := make([]byte, 3<<20) // several records
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(large)
	agent := writeAgent(t, map[string]string{"config.yaml": "name: helper\n", "docs/large.bin": string(large), "empty.txt": "", "tools.sh": "echo\n"})
	if err := os.Chmod(filepath.Join(agent.Path, "tools.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	child := writeAgent(t, map[string]string{"graph.yaml": "name: child\n"})
	child.Name = "child"
	b, err := Pack([]Dir{agent, child})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Pack([]Dir{agent, child})
	if err != nil || again.Hash != b.Hash {
		t.Errorf("packed twice: %s and %s, %v", b.Hash, again.Hash, err)
	}
	file, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, st := range map[string]journal.Store{"memory": journal.NewMemory(), "sqlite": file} {
		ctx := t.Context()
		for i, want := range []bool{true, false} {
			if written, err := b.Put(ctx, st); err != nil || written != want {
				t.Fatalf("%s: Put %d: %v, %v", name, i, written, err)
			}
		}
		cache := t.TempDir()
		dir, err := Open(ctx, st, b.Hash, cache)
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(cache, "agents", b.Hash, "helper"); dir != want {
			t.Errorf("%s: the agent is in %s, want %s", name, dir, want)
		}
		copied, err := Pack([]Dir{{"helper", dir}, {"child", filepath.Join(filepath.Dir(dir), "child")}})
		if err != nil {
			t.Fatal(err)
		}
		if copied.Hash != b.Hash {
			t.Errorf("%s: the files have changed: %s", name, cmp.Diff(b.Files, copied.Files))
		}
		info, err := os.Stat(filepath.Join(dir, "docs", "large.bin"))
		if err != nil || info.Mode().Perm()&0o222 != 0 {
			t.Errorf("%s: the file can be written: %v, %v", name, info.Mode(), err)
		}
		if fault, err := CheckThread(ctx, st, threadPrefix+b.Hash); fault != nil || err != nil {
			t.Errorf("%s: CheckThread: %v, %v", name, fault, err)
		}
	}
}

// What must not leave the machine, and what a run does not need, is not in a bundle.
func TestLeftOut(t *testing.T) {
	b := packFiles(t, map[string]string{
		"config.yaml": "name: helper\n", ".env": "KEY=1", ".git/config": "x", "docs/.hidden": "x",
		"__pycache__/tools.pyc": "x", "rag.yaml": madeByRaddle + "base: rag.db\nembedding_model: keyword\n", "rag.db": "x", "rag.db-wal": "x", "rag.db-lock": "", "other.db": "kept", "new.db": "x", "new.db-lock": "",
		".gitignore": "*.log\n/out/\n!keep.log\n# comment\ndata/**/tmp\n", ".raddleignore": "notes.txt\n",
		"a.log": "x", "keep.log": "kept", "sub/b.log": "x", "out/x": "x", "sub/out/x": "kept", "notes.txt": "x", "sub/notes.txt": "x",
		"data/a/b/tmp": "x", "data/a/b/kept": "kept", "sub/.gitignore": "c.txt", "sub/c.txt": "x", "c.txt": "kept",
	})
	want := []string{"helper/c.txt", "helper/config.yaml", "helper/data/a/b/kept", "helper/keep.log", "helper/other.db", "helper/sub/out/x"}
	if diff := cmp.Diff(want, pathsOf(b)); diff != "" {
		t.Error(diff)
	}
}

// What stops a bundle is an error that names the file.
func TestRefused(t *testing.T) {
	t.Run("link", func(t *testing.T) {
		a := writeAgent(t, map[string]string{"config.yaml": "x"})
		if err := os.Symlink("/etc/passwd", filepath.Join(a.Path, "users")); err != nil {
			t.Skip("no symbolic links: ", err)
		}
		_, err := Pack([]Dir{a})
		checkRefusal(t, err, filepath.Join(a.Path, "users")+" is a link")
		testfile.WriteFiles(t, a.Path, map[string]string{".raddleignore": "users\n"})
		if _, err := Pack([]Dir{a}); err != nil {
			t.Errorf("a link that is left out: %v", err)
		}
	})
	t.Run("size", func(t *testing.T) {
		a := writeAgent(t, map[string]string{"config.yaml": "x", "large.bin": strings.Repeat("x", maxBytes)})
		_, err := Pack([]Dir{a})
		checkRefusal(t, err, "larger than 32 MiB")
		checkRefusal(t, err, "large.bin")
		if err := os.Truncate(filepath.Join(a.Path, "large.bin"), maxBytes-1); err != nil {
			t.Fatal(err)
		}
		if _, err := Pack([]Dir{a}); err != nil {
			t.Errorf("a bundle of exactly 32 MiB: %v", err)
		}
	})
	t.Run("names", func(t *testing.T) {
		a := writeAgent(t, map[string]string{"config.yaml": "x"})
		_, err := Pack([]Dir{a, {Name: "helper", Path: a.Path + "2"}})
		checkRefusal(t, err, "two agents have the same name")
		_, err = Pack([]Dir{{Name: ".hidden", Path: a.Path}})
		checkRefusal(t, err, a.Path)
	})
	secrets := redact.New("sk-live-0123456789abcdef")
	for name, text := range map[string]string{
		"a secret of this machine": "curl -H 'Authorization: sk-live-0123456789abcdef'",
		"a private key":            "-----BEGIN OPENSSH " + "PRIVATE KEY-----\nabc\n",
	} {
		b := packFiles(t, map[string]string{"config.yaml": "x", "sub/tools.sh": text})
		err := b.CheckSecrets(secrets)
		checkRefusal(t, err, "helper/sub/tools.sh has "+name)
		if err != nil && strings.Contains(err.Error(), "0123456789") {
			t.Errorf("the message has the secret: %v", err)
		}
	}
	if err := packFiles(t, map[string]string{"config.yaml": "-----BEGIN PUBLIC KEY-----"}).CheckSecrets(secrets); err != nil {
		t.Errorf("a public key: %v", err)
	}
}

func checkRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if refused, ok := errors.AsType[*failure.Error](err); !ok || !strings.Contains(refused.Error(), want) {
		t.Errorf("the error is %v, want one with %q", err, want)
	}
}

// forge writes a bundle to a store as a person who controls the store could: the hashes are right, the content is hostile.
func forge(t *testing.T, st journal.Store, agent string, files []File, contents ...string) string {
	t.Helper()
	b := &Bundle{Agent: agent, Files: files}
	for i := range files {
		b.contents = append(b.contents, []byte(contents[i]))
		if files[i].SHA256 == "" {
			files[i].SHA256 = hashBytes([]byte(contents[i]))
		}
		if files[i].Size == 0 {
			files[i].Size = int64(len(contents[i]))
		}
	}
	var err error
	if b.manifest, err = json.Marshal(manifest{format, agent, files}); err != nil {
		t.Fatal(err)
	}
	b.Hash = hashBytes(b.manifest)
	if _, err := b.Put(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	return b.Hash
}

// A store that another person controls cannot make raddle write outside of its cache, or use other files than the hash names.
func TestHostileStore(t *testing.T) {
	for _, bad := range []string{"../out", "a/../../out", "/tmp/out", "a//b", "a/./b", `a\b`, "C:/out", "a/.env", ".ssh/id", "a/b\x00", "a/b\n", "", "a/" + strings.Repeat("x", 600)} {
		st := journal.NewMemory()
		files := []File{{Path: bad}, {Path: "a/graph.yaml"}}
		slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
		refuseBundle(t, st, forge(t, st, "a", files, "x", "x"), "cannot be a file")
	}
	for _, agent := range []string{"..", ".", "", "a/b", "/"} {
		st := journal.NewMemory()
		refuseBundle(t, st, forge(t, st, agent, []File{{Path: "a/b/graph.yaml"}}, "x"), "")
	}
	for name, c := range map[string]struct {
		files []File
		want  string
	}{
		"twice":     {[]File{{Path: "a/x"}, {Path: "a/x"}}, "not in order"},
		"unsorted":  {[]File{{Path: "a/y"}, {Path: "a/x"}}, "not in order"},
		"negative":  {[]File{{Path: "a/x", Size: -1}, {Path: "a/y"}}, "larger"},
		"huge":      {[]File{{Path: "a/x", Size: 1 << 60}, {Path: "a/y"}}, "larger"},
		"no agent":  {[]File{{Path: "b/x"}, {Path: "b/y"}}, "no files of the agent"},
		"content":   {[]File{{Path: "a/x", SHA256: hashBytes(nil)}, {Path: "a/y"}}, "another content"},
		"too short": {[]File{{Path: "a/x"}, {Path: "a/y", Size: 9}}, "cannot be read"},
		"in a file": {[]File{{Path: "a/x"}, {Path: "a/x/y"}}, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			st := journal.NewMemory()
			refuseBundle(t, st, forge(t, st, "a", c.files, "x", "x"), c.want)
		})
	}
	t.Run("records", func(t *testing.T) { testHostileRecords(t) })
}

// testHostileRecords changes the records of a bundle, one after another.
func testHostileRecords(t *testing.T) {
	b := packFiles(t, map[string]string{"config.yaml": "name: helper\n"})
	recs, err := b.encodeRecords()
	if err != nil {
		t.Fatal(err)
	}
	bomb := func() []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		for range 64 {
			_, _ = z.Write(make([]byte, 1<<20))
		}
		_ = z.Close()
		return out.Bytes()
	}()
	for name, change := range map[string]func(r []journal.Record) []journal.Record{
		"another list":  func(r []journal.Record) []journal.Record { r[0].Data = append(r[0].Data, ' '); return r },
		"another file":  func(r []journal.Record) []journal.Record { r[1].Data = []byte("not gzip"); return r },
		"a bomb":        func(r []journal.Record) []journal.Record { r[1].Data = bomb; return r },
		"a part less":   func(r []journal.Record) []journal.Record { return r[:1] },
		"a large head":  func(r []journal.Record) []journal.Record { r[0].Head = []byte(`{"parts":1000000000}`); return r },
		"another kind":  func(r []journal.Record) []journal.Record { r[0].Kind = journal.KindStart; return r },
		"no head":       func(r []journal.Record) []journal.Record { r[0].Head = nil; return r },
		"negative head": func(r []journal.Record) []journal.Record { r[0].Head = []byte(`{"parts":-1}`); return r },
	} {
		t.Run(name, func(t *testing.T) {
			st := journal.NewMemory()
			own := slices.Clone(recs)
			for i := range own {
				own[i].Head, own[i].Data = slices.Clone(own[i].Head), slices.Clone(own[i].Data)
			}
			if err := st.Append(t.Context(), threadPrefix+b.Hash, 0, change(own)); err != nil {
				t.Fatal(err)
			}
			refuseBundle(t, st, b.Hash, "")
			if fault, err := CheckThread(t.Context(), st, threadPrefix+b.Hash); fault == nil || err != nil {
				t.Errorf("CheckThread: %v, %v", fault, err)
			}
		})
	}
	if _, err := Open(t.Context(), journal.NewMemory(), "../../etc", t.TempDir()); !errors.As(err, new(*DamagedError)) {
		t.Errorf("a hash that is a path: %v", err)
	}
	if _, err := Open(t.Context(), journal.NewMemory(), b.Hash, t.TempDir()); !errors.Is(err, ErrMissing) {
		t.Errorf("a missing bundle: %v", err)
	}
}

// refuseBundle checks that a bundle is not used, and that nothing is left of it, neither in the cache nor next to it.
func refuseBundle(t *testing.T, st journal.Store, hash, want string) {
	t.Helper()
	around := t.TempDir()
	cache := filepath.Join(around, "x", "y", "cache")
	dir, err := Open(t.Context(), st, hash, cache)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Open: %q, %v, want an error with %q", dir, err, want)
	}
	_ = filepath.WalkDir(around, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			t.Errorf("it has written %s", path)
		}
		return nil
	})
}

// Many processes write and read one bundle at once: all of them get it, and nothing else is left.
func TestAtTheSameTime(t *testing.T) {
	b := packFiles(t, map[string]string{"config.yaml": "name: helper\n", "docs/a.txt": strings.Repeat("a", 1<<16)})
	path, cache := filepath.Join(t.TempDir(), "runs.db"), t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			st, err := sqlite.Open(path) // as a process of its own would
			if err != nil {
				t.Error(err)
				return
			}
			defer st.Close()
			if _, err := b.Put(t.Context(), st); err != nil {
				t.Error(err)
			}
			dir, err := Open(t.Context(), st, b.Hash, cache)
			if err != nil {
				t.Error(err)
				return
			}
			if again, err := Pack([]Dir{{"helper", dir}}); err != nil || again.Hash != b.Hash {
				t.Errorf("the files are others: %v", err)
			}
		})
	}
	all.Wait()
	entries, err := os.ReadDir(filepath.Join(cache, "agents"))
	if err != nil || len(entries) != 1 || entries[0].Name() != b.Hash {
		t.Errorf("the cache has %v, %v", entries, err)
	}
}

// Files that were changed in the cache are written again.
func TestChangedCache(t *testing.T) {
	b := packFiles(t, map[string]string{"config.yaml": "name: helper\n", "tools.sh": "echo\n"})
	st, cache := journal.NewMemory(), t.TempDir()
	if _, err := b.Put(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(file string) error{
		"nothing": func(string) error { return nil },
		"changed": func(file string) error {
			return errors.Join(os.Chmod(file, 0o600), os.WriteFile(file, []byte("evil"), 0o600))
		},
		"removed": os.Remove,
		"link":    func(file string) error { return errors.Join(os.Remove(file), os.Symlink("config.yaml", file)) },
	} {
		dir, err := Open(t.Context(), st, b.Hash, cache)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(filepath.Join(dir, "tools.sh")); err != nil {
			t.Fatal(err)
		}
		if dir, err = Open(t.Context(), st, b.Hash, cache); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "tools.sh")); err != nil || string(text) != "echo\n" {
			t.Errorf("%s: the file is %q, %v", name, text, err)
		}
	}
}

// Bundles are removed when they are old and not needed; one that a run is about to use stays.
func TestRemoveUnused(t *testing.T) {
	ctx, st := t.Context(), journal.NewMemory()
	hashes := map[string]string{}
	for _, name := range []string{"new", "needed", "unused", "stopped", "used"} {
		b := packFiles(t, map[string]string{"config.yaml": name})
		hashes[name] = b.Hash
		recs, err := b.encodeRecords()
		if err != nil {
			t.Fatal(err)
		}
		if name == "stopped" { // a copy
			recs = recs[:1]
		}
		for i := range recs {
			if name != "new" {
				recs[i].Time = time.Now().Add(-2 * Grace).UnixMicro()
			}
		}
		if err := st.Append(ctx, threadPrefix+b.Hash, 0, recs); err != nil {
			t.Fatal(err)
		}
		if name == "used" {
			if written, err := b.Put(ctx, st); written || err != nil {
				t.Errorf("Put of a bundle that is there: %v, %v", written, err)
			}
		}
	}
	n, err := RemoveUnused(ctx, st, func(old map[string]bool) (map[string]bool, error) {
		if len(old) != 3 || old[hashes["new"]] || old[hashes["used"]] {
			t.Errorf("the old bundles are %v of %v", old, hashes)
		}
		return map[string]bool{hashes["needed"]: true}, nil
	})
	if n != 2 || err != nil {
		t.Errorf("it has removed %d, %v", n, err)
	}
	for name, want := range map[string]bool{"new": true, "needed": true, "used": true, "unused": false, "stopped": false} {
		if is, _, err := Has(ctx, st, hashes[name]); is != want || err != nil {
			t.Errorf("%s: %v, %v", name, is, err)
		}
	}
}

// A copy that was stopped is no bundle yet: the next upload replaces it.
func TestPutAfterStoppedCopy(t *testing.T) {
	b, st := packFiles(t, map[string]string{"config.yaml": "x"}), journal.NewMemory()
	recs, err := b.encodeRecords()
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Append(t.Context(), threadPrefix+b.Hash, 0, recs[:1]); err != nil {
		t.Fatal(err)
	}
	if written, err := b.Put(t.Context(), st); !written || err != nil {
		t.Errorf("Put: %v, %v", written, err)
	}
	if _, err := Get(t.Context(), st, b.Hash); err != nil {
		t.Error(err)
	}
}

// An error of the store is that of the caller, and not taken for a missing bundle.
func TestStoreErrors(t *testing.T) {
	b, st := packFiles(t, map[string]string{"config.yaml": "x"}), journal.NewMemory()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, put := b.Put(ctx, st)
	_, open := Open(ctx, st, b.Hash, t.TempDir())
	_, _, has := Has(ctx, st, b.Hash)
	_, check := CheckThread(ctx, st, threadPrefix+b.Hash)
	for i, err := range []error{put, open, has, check} {
		if !errors.Is(err, context.Canceled) {
			t.Error(fmt.Sprint(i, ": ", err))
		}
	}
}
