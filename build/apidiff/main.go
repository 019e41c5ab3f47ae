// Command apidiff compares the packages that are API with those of an older version, and prints what has changed. It
// fails if a name has changed or is gone and the table of renames has no row for it that the older version does not
// have. Names that the older version lists as those for the program only need no row.
//
//	apidiff -old DIR -new DIR
//
// Both directories are roots of the module. Their docs/api.md list the packages, their docs/renames.md have the rows,
// and the first section with a number in their CHANGELOG.md is their version. If the newer one is a patch version of
// the older one, each change that can break a program fails, with a row or without.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/mod/semver"
)

func main() {
	before := flag.String("old", "", "root of the older version")
	after := flag.String("new", ".", "root of the newer version")
	flag.Parse()
	found, err := compareVersions(os.Stdout, *before, *after)
	if err != nil {
		fmt.Fprintln(os.Stderr, "apidiff:", err)
		os.Exit(2)
	}
	if found.missing > 0 {
		fmt.Fprintf(os.Stderr, "apidiff: %d of these changes can break programs and have no row in %s: "+
			"add one for each, with the package, the old name and what to write now\n", found.missing, renamesPage)
	}
	if found.inPatch > 0 {
		fmt.Fprintf(os.Stderr, "apidiff: %d of these changes can break programs, and %s says that this is a patch version: "+
			"take them back, or release a minor version\n", found.inPatch, changelog)
	}
	if found != (findings{}) {
		os.Exit(1)
	}
}

// findings counts the changes that may not be.
type findings struct {
	missing int // can break programs, and have no row
	inPatch int // can break programs, in a patch version
}

// The pages of a version, below its root.
const (
	apiPage     = "docs/api.md"
	renamesPage = "docs/renames.md"
	changelog   = "CHANGELOG.md"
)

// The headings of the tables of apiPage.
const (
	apiTable      = "## API"
	programsTable = "## Names for the program only"
)

// compareVersions prints what has changed between two versions, and counts what may not be.
func compareVersions(w io.Writer, before, after string) (found findings, err error) {
	old, err := loadVersion(before)
	if err != nil {
		return findings{}, err
	}
	now, err := loadVersion(after)
	if err != nil {
		return findings{}, err
	}
	rows, err := newRows(before, after)
	if err != nil {
		return findings{}, err
	}
	patch := isPatch(old.number, now.number)
	for _, name := range slices.Sorted(maps.Keys(old.packages)) {
		changes := []apidiff.Change{{Message: "the package is no longer API"}}
		if now.packages[name] != nil {
			changes = apidiff.Changes(old.packages[name], now.packages[name]).Changes
		}
		for _, c := range changes {
			changed := changedName(c.Message)
			verdict := "added"
			switch {
			case c.Compatible:
			case slices.Contains(old.unpromised, name+"."+changed):
				verdict = "free"
			case patch:
				verdict = "PATCH"
				found.inPatch++
			case !rows.has(name, changed):
				verdict = "NO ROW"
				found.missing++
			default:
				verdict = "changed"
			}
			fmt.Fprintf(w, "%-8s %s: %s\n", verdict, name, c.Message)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now.packages)) {
		if old.packages[name] == nil {
			fmt.Fprintf(w, "%-8s %s: the package\n", "added", name)
		}
	}
	return found, nil
}

// isPatch reports whether a version, such as 0.3.1, is a patch version of an older one. "" is not known.
func isPatch(old, now string) bool {
	if old == "" || now == "" {
		return false
	}
	return semver.Compare("v"+old, "v"+now) < 0 && semver.MajorMinor("v"+old) == semver.MajorMinor("v"+now)
}

// changedName returns the name that a change is about, such as Type.Method; "" for the package.
func changedName(message string) string {
	name, _, ok := strings.Cut(message, ": ")
	if !ok {
		return ""
	}
	name, _, _ = strings.Cut(name, ", method set of ")
	return strings.NewReplacer("(*", "", ")", "").Replace(name)
}

// A version is what is compared.
type version struct {
	packages   map[string]*types.Package // those that it lists as API, by their paths below the module
	unpromised []string                  // names of them that may change at any time, such as a/b.Type.Member
	number     string                    // such as 0.3.0; "": its changelog has none
}

// numberHeading is the heading of a version in the changelog.
var numberHeading = regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+)\b`)

// loadVersion reads a version.
func loadVersion(root string) (*version, error) {
	page, err := os.ReadFile(filepath.Join(root, apiPage))
	if err != nil {
		return nil, err
	}
	names := readNames(string(page), apiTable)
	if len(names) == 0 {
		return nil, fmt.Errorf("%s of %s lists no packages below the heading %q", apiPage, root, apiTable)
	}
	v := &version{unpromised: readNames(string(page), programsTable)}
	changes, err := os.ReadFile(filepath.Join(root, changelog))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	if m := numberHeading.FindSubmatch(changes); m != nil {
		v.number = string(m[1])
	}
	v.packages, err = loadPackages(root, names)
	return v, err
}

// loadPackages returns packages of a version with their types, by their paths below the module.
func loadPackages(root string, names []string) (map[string]*types.Package, error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Export,Module"}
	for _, name := range names {
		args = append(args, "./"+name)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("the packages of %s: go list: %w\n%s", root, err, said.Bytes())
	}
	module := ""
	files := map[string]string{} // with export data, by import path
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Export string
			Module             *struct {
				Path string
				Main bool
			}
		}
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("the packages of %s: go list: %w", root, err)
		}
		files[p.ImportPath] = p.Export
		if p.Module != nil && p.Module.Main {
			module = p.Module.Path
		}
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	loaded := map[string]*types.Package{}
	for _, name := range names {
		if loaded[name], err = imports.Import(module + "/" + name); err != nil {
			return nil, fmt.Errorf("the types of %s in %s: %w", name, root, err)
		}
	}
	return loaded, nil
}

var codeInText = regexp.MustCompile("`([^`]+)`")

// readNames returns the names in the first cells of the table below a heading. TestAPIPageIsReadAlike of package
// internal/repository, which reads the same page, holds both to one page.
func readNames(page, heading string) (names []string) {
	_, table, _ := strings.Cut("\n"+page, "\n"+heading+"\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, row := range readRows(table) {
		names = append(names, row[0]...)
	}
	return names
}

// readRows returns the names in code that the cells of tables have.
func readRows(text string) (rows [][][]string) {
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 4 {
			continue
		}
		var row [][]string
		for _, cell := range cells[1 : len(cells)-1] {
			var names []string
			for _, m := range codeInText.FindAllStringSubmatch(cell, -1) {
				names = append(names, m[1])
			}
			row = append(row, names)
		}
		rows = append(rows, row)
	}
	return rows
}

// A renames maps packages to the names that rows are about. The name "" is about the package.
type renames map[string][]string

// has reports whether there is a row about a name of a package, or about the type that it belongs to.
func (r renames) has(name, changed string) bool {
	typ, _, _ := strings.Cut(changed, ".")
	return slices.Contains(r[name], changed) || slices.Contains(r[name], typ)
}

// newRows returns the rows of the newer version that the older one does not have: PACKAGE | OLD | NEW. A row without an
// old name is about the package.
func newRows(before, after string) (renames, error) {
	old, err := os.ReadFile(filepath.Join(before, renamesPage))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	now, err := os.ReadFile(filepath.Join(after, renamesPage))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var added strings.Builder
	for line := range strings.Lines(string(now)) {
		if !slices.Contains(slices.Collect(strings.Lines(string(old))), line) {
			added.WriteString(line)
		}
	}
	rows := renames{}
	for _, row := range readRows(added.String()) {
		if len(row) < 3 || len(row[0]) != 1 {
			continue
		}
		names := row[1]
		if len(names) == 0 {
			names = []string{""}
		}
		rows[row[0][0]] = append(rows[row[0][0]], names...)
	}
	return rows, nil
}
