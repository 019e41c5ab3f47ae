package permission

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Consents remember for which directories a person agreed that raddle may use the scripts and rules
// that it found there, without a configuration that names them. A consent covers the files as they
// were; when one of them changes, raddle asks again. The zero value remembers nothing.
// The file maps directories, with symbolic links followed, to digests. It is read at each call, so
// that the answers of other processes count.
type Consents struct {
	Path string // of the file that holds them; it need not exist
}

// HasConsent reports whether there is a consent for a directory with this digest, which is the
// digest of its files now.
func (c Consents) HasConsent(dir, digest string) (bool, error) {
	dir, err := resolveAbs(dir)
	if err != nil {
		return false, fmt.Errorf("look up a consent: %w", err)
	}
	known, err := c.loadConsents()
	if err != nil {
		return false, fmt.Errorf("look up a consent: %w", err)
	}
	given, ok := known[dir]
	return ok && given == digest, nil
}

// RecordConsent records the consent for a directory with the digest that the person was
// asked about.
func (c Consents) RecordConsent(dir, digest string) error {
	dir, err := resolveAbs(dir)
	if err != nil {
		return fmt.Errorf("record a consent: %w", err)
	}
	known, err := c.loadConsents()
	if err != nil {
		return fmt.Errorf("record a consent: %w", err)
	}
	known[dir] = digest
	text, err := json.MarshalIndent(known, "", "  ")
	if err == nil {
		err = replaceFile(c.Path, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("record a consent: %w", err)
	}
	return nil
}

// refused is recorded in place of a digest.
const refused = "no"

// RecordRefusal records that a person does not want a directory to be used, so that raddle does not
// ask again.
func (c Consents) RecordRefusal(dir string) error { return c.RecordConsent(dir, refused) }

// LookUpConsent returns what is recorded for a directory: a digest to compare with that of its
// files, whether it was refused, or neither.
func (c Consents) LookUpConsent(dir string) (digest string, no bool, err error) {
	dir, err = resolveAbs(dir)
	if err != nil {
		return "", false, fmt.Errorf("look up a consent: %w", err)
	}
	known, err := c.loadConsents()
	if err != nil {
		return "", false, fmt.Errorf("look up a consent: %w", err)
	}
	if known[dir] == refused {
		return "", true, nil
	}
	return known[dir], false, nil
}

// loadConsents reads the file. A damaged one is an error: an empty answer would ask again for
// everything and then replace what the file holds.
func (c Consents) loadConsents() (map[string]string, error) {
	known := map[string]string{}
	text, err := os.ReadFile(c.Path)
	if errors.Is(err, fs.ErrNotExist) || c.Path == "" {
		return known, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &known); err != nil {
		return nil, fmt.Errorf("%s: %w: delete the file to be asked again", c.Path, err)
	}
	return known, nil
}

// resolveAbs returns the absolute path of a directory with symbolic links followed.
func resolveAbs(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return resolvePath(dir)
}

// scriptEndings and scriptNames are the files that Digest covers, in addition to executable ones;
// passedOver are the directories that it leaves out.
var (
	scriptEndings = []string{".sh", ".bash", ".py", ".pyc", ".pth", ".so", ".ts", ".mts", ".cts", ".js", ".mjs", ".cjs"}
	scriptNames   = []string{"graph.yaml", "graph.yml", "config.yaml", "config.yml", "permissions.yaml", "mcp.json", ".env"}
	passedOver    = []string{".git", "node_modules", ".venv", "sessions", "cache"}
)

// Digest returns a digest of everything in a directory that may run or that decides what runs:
// scripts, executable files, agent files, rules, servers. It also returns these files, relative to
// the directory, so that a person can see them. Files in .git, sessions and cache do not count.
// Files in node_modules and .venv do not count either: use [DigestTree] for them.
// The digest depends on the names, sizes and contents of the files, not on their times.
func Digest(dir string) (digest string, files []string, err error) {
	sum := sha256.New()
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != dir && slices.Contains(passedOver, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			return nil // a link that leads nowhere, a socket: nothing that could run
		}
		ending := strings.ToLower(filepath.Ext(path))
		if !slices.Contains(scriptEndings, ending) && !slices.Contains(scriptNames, d.Name()) && info.Mode()&0o111 == 0 {
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files = append(files, filepath.ToSlash(rel))
		return addFile(sum, path, filepath.ToSlash(rel), info.Size())
	})
	if err != nil {
		return "", nil, fmt.Errorf("look at the scripts of %s: %w", dir, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), files, nil
}

// DigestTree returns a digest of everything in a directory, such as a Python environment. For a
// link, it covers the target's path, and also the target's contents if the target is in the
// workspace but not in the directory itself.
func DigestTree(dir, workspace string) (string, error) {
	t := treeDigest{sum: sha256.New(), dir: dir, workspace: workspace, seen: map[string]bool{}}
	if real, err := resolveAbs(dir); err == nil {
		t.dir = real
	}
	if real, err := resolveAbs(workspace); err == nil {
		t.workspace = real
	}
	if err := t.addPath(t.dir, ""); err != nil {
		return "", fmt.Errorf("look at the files of %s: %w", dir, err)
	}
	return hex.EncodeToString(t.sum.Sum(nil)), nil
}

// A treeDigest collects the digest of a tree of files.
// A link to a directory is entered once, whatever number of links lead to it.
type treeDigest struct {
	sum            hash.Hash
	dir, workspace string
	seen           map[string]bool // targets of links
}

// addPath adds a directory or file under a name.
// Of the rights only those to run a file count. Sockets and devices do not count.
func (t *treeDigest) addPath(root, as string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(filepath.Join(as, rel))
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			return t.addLink(path, name)
		case d.Type().IsRegular():
			fmt.Fprintf(t.sum, "%o ", info.Mode().Perm()&0o111)
			return addFile(t.sum, path, name, info.Size())
		}
		return nil
	})
}

// addLink adds a link: its name, where it leads, and what is there if that is in the workspace,
// where a model may change it.
func (t *treeDigest) addLink(path, name string) error {
	to, err := os.Readlink(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.sum, "link %d:%s %d:%s", len(name), name, len(to), to)
	at, err := resolvePath(path)
	if err != nil || !isWithin(t.workspace, at, false) || isWithin(t.dir, at, false) || t.seen[at] {
		return nil // it leads to the user's own files, or to what is covered
	}
	if isWithin(at, t.dir, false) {
		return fmt.Errorf("the link %s leads to a directory around it", name)
	}
	t.seen[at] = true
	if _, err := os.Lstat(at); err != nil {
		return nil // to nothing
	}
	return t.addPath(at, name)
}

// addFile adds the name, the size and the contents of a file. The lengths before the parts keep two
// different trees from giving the same bytes.
func addFile(sum io.Writer, path, name string, size int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Fprintf(sum, "%d:%s %d:", len(name), name, size)
	_, err = io.Copy(sum, f)
	return err
}

// fileHead begins a file of rules that did not exist.
const fileHead = `# Rules from answers of "always". Delete what is no longer wanted.
`

// RememberRules adds rules to the list allow of a file of rules, which need not exist. The file is
// replaced as a whole, so a crash leaves the old one or the new one. If two processes write rules
// at the same moment, the rules of one may be lost.
func RememberRules(path string, rules []string) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remember permissions: %w", err)
	}
	if text, err = AppendRules(path, text, rules); err != nil {
		return fmt.Errorf("remember permissions: %w", err)
	}
	if err := replaceFile(path, text); err != nil {
		return fmt.Errorf("remember permissions: %w", err)
	}
	return nil
}

// replaceFile writes a new file next to the old one and renames it to the old name.
// The new file is on the disk before it gets the name.
func replaceFile(path string, text []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".permissions-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // it no longer exists if the rename succeeded
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// AppendRules returns the text of a file of rules with further rules at the end of its
// list allow, and all else as it was, comments included. What the list has
// already is left out. The file's name is for messages.
// It reads the result again, and returns an error if that does not have exactly the old rules and
// the new ones: a file can be written in ways that the insertion does not expect.
func AppendRules(file string, text []byte, rules []string) ([]byte, error) {
	before, err := LoadRules(file, text)
	if err != nil {
		return nil, err
	}
	rules = slices.DeleteFunc(slices.Clone(rules), func(rule string) bool {
		return slices.ContainsFunc(before.Allow, func(r Rule) bool { return r.Text == rule })
	})
	if len(rules) == 0 {
		return text, nil
	}
	out := insertRules(text, rules)
	after, err := LoadRules(file, out)
	if err != nil || len(after.Allow) != len(before.Allow)+len(rules) || len(after.Ask) != len(before.Ask) || len(after.Deny) != len(before.Deny) {
		return nil, fmt.Errorf("%s: the list allow is written in a form that cannot be added to: put each rule on a line of its own", file)
	}
	for i, rule := range rules {
		if got := after.Allow[len(before.Allow)+i].Text; got != rule {
			return nil, fmt.Errorf("%s: the rule %q would be read as %q", file, rule, got)
		}
	}
	return out, nil
}

// insertRules puts rules where the list allow ends, as far as that can be seen.
// The rules get the indentation of the list. A file without the list gets one at its end.
func insertRules(text []byte, rules []string) []byte {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte(fileHead)
	}
	at, head, indent := len(text), "allow:\n", "  "
	if line, column, found := allowEnd(text); found {
		at, head, indent = lineEnd(text, line), "", strings.Repeat(" ", max(column, 0))
	}
	var b strings.Builder
	if at > 0 && text[at-1] != '\n' {
		b.WriteByte('\n')
	}
	b.WriteString(head)
	for _, rule := range rules {
		b.WriteString(indent + "- " + strconv.Quote(rule) + "\n")
	}
	return slices.Concat(text[:at], []byte(b.String()), text[at:])
}

// allowEnd finds the last line of the list allow, and the column of its dashes.
func allowEnd(text []byte) (line, column int, found bool) {
	var doc yaml.Node
	if loader, err := yaml.NewLoader(bytes.NewReader(text)); err != nil || loader.Load(&doc) != nil || len(doc.Content) != 1 {
		return 0, 0, false
	}
	top := doc.Content[0]
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, list := top.Content[i], top.Content[i+1]
		switch {
		case key.Value != "allow":
		case len(list.Content) == 0:
			return key.Line, 2, true
		default:
			last := list.Content[len(list.Content)-1]
			return last.Line, list.Column - 1, true
		}
	}
	return 0, 0, false
}

// lineEnd returns the offset behind the newline of a line, counted from one.
func lineEnd(text []byte, line int) int {
	at := 0
	for range line {
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 {
			return len(text)
		}
		at += i + 1
	}
	return at
}
