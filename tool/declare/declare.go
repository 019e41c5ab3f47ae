// Package declare reads what a script says it can do: from annotations in bash,
// from signatures in Python and TypeScript. It runs nothing, needs no
// interpreter, and changes no file; what it returns depends on the text alone.
//
//	f := declare.ParseBash("tools/fs_cat.sh", source)
//	for _, d := range f.Declarations { ... }
//	for _, p := range f.Problems { log.Print(p) }
//
// A file is never refused as a whole: a fault of one function is a [Problem],
// and the other functions are declared.
package declare

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"raddle.dev/internal/base/plainfile"
	"raddle.dev/tool"
)

// maxSource is the largest file that Load reads, in bytes.
const maxSource = 4 << 20

// A Language is a programming language of tools.
type Language string

// The languages, named by the extension of their files.
const (
	LanguageBash       Language = "sh"
	LanguagePython     Language = "py"
	LanguageTypeScript Language = "ts"
)

// A File holds the declarations of one script.
type File struct {
	Path         string // as given
	Language     Language
	Declarations []Declaration // in the order of the source
	// Instructions is the function _instructions, which writes an agent's
	// instructions and is never offered to a model; nil: there is none.
	Instructions *Declaration
	Problems     []Problem // in the order of the source
}

// A Declaration is one function that a model may call.
type Declaration struct {
	Name        string
	Description string
	// Schema is that of the arguments, an object; its keys are in a fixed order, properties in that of the source.
	Schema  json.RawMessage
	Effect  tool.Effect // of an annotation; unset: there is none
	InDoubt tool.Doubt  // of an annotation; unset: there is none
	Line    int         // of the function, from 1

	Function string   // what to call, spelt as in the source
	Agent    bool     // one function of several in its file: called as a sub-command
	Params   []string // the parameters' names in the order of the source; nil for bash
	Command  *Command // options and environment of a bash function; nil for other languages

	arguments *schema // of a Python or TypeScript function
}

// MarshalJSON returns the declaration as raddle sends it to providers: name, description
// and parameters.
func (d Declaration) MarshalJSON() ([]byte, error) {
	var w jsonWriter
	w.writeObject(func() {
		w.writeMember("name", d.Name)
		w.writeMember("description", d.Description)
		w.writeRaw("parameters", d.Schema)
	})
	return []byte(w.String()), nil
}

// A Problem is a fault of a source file.
type Problem struct {
	File string
	Line int    // from 1; 0: the file as a whole
	Text string // what is wrong and what to do
	Lost string // the function that is not declared because of it; empty: none, or the file as a whole
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// Load reads a file and returns its declarations. The extension says the language: .sh, .py
// or .ts. For a file that cannot be read, or has another extension, the File has one problem
// and no declarations.
func Load(path string) File {
	f := File{Path: path, Language: Language(strings.TrimPrefix(filepath.Ext(path), "."))}
	failed := func(format string, args ...any) File {
		f.Problems = append(f.Problems, Problem{File: path, Text: fmt.Sprintf(format, args...)})
		return f
	}
	parse := map[Language]func(string, []byte) File{
		LanguageBash: ParseBash, LanguagePython: ParsePython, LanguageTypeScript: ParseTypeScript,
	}[f.Language]
	switch {
	case f.Language == "":
		return failed("Unable to extract language from tool file: %s", fileStem(path))
	case parse == nil:
		return failed("Unsupported tool file extension '.%s': write tools in bash (.sh), Python (.py) or TypeScript (.ts)", f.Language)
	}
	src, err := plainfile.Read(path, maxSource)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failed("Tool definition file not found: %s", path)
	case errors.Is(err, plainfile.ErrNotRegular):
		return failed("Unable to open tool definition file. It is not a regular file")
	case errors.Is(err, plainfile.ErrTooLarge):
		return failed("the file has more than %d MiB: move what is not about arguments into a file of its own", maxSource>>20)
	case err != nil:
		return failed("Unable to open tool definition file. %v", err)
	}
	return parse(path, src)
}

func (f *File) addProblem(line int, lost, format string, args ...any) {
	f.Problems = append(f.Problems, Problem{File: f.Path, Line: line, Text: fmt.Sprintf(format, args...), Lost: lost})
}

// addDeclaration appends a declaration, unless its name is taken or empty.
func (f *File) addDeclaration(d Declaration) {
	if d.Name == "" {
		f.addProblem(d.Line, d.Function, "the name '%s' has no character that a tool's name may have: use letters, digits and underscores", d.Function)
		return
	}
	for _, other := range f.Declarations {
		if other.Name == d.Name {
			f.addProblem(d.Line, d.Function, "the tool '%s' is declared already, by '%s' in line %d: rename one of them", d.Name, other.Function, other.Line)
			return
		}
	}
	f.Declarations = append(f.Declarations, d)
}

// fileStem returns a file's name without directory and extension.
func fileStem(path string) string {
	name := filepath.Base(path)
	return strings.TrimSuffix(name, filepath.Ext(name))
}

// inTools reports whether a file is a global tool: of those in Python and
// TypeScript only the function run is declared, under the file's name.
func inTools(path string) bool { return filepath.Base(filepath.Dir(path)) == "tools" }

// instructions is the function that writes an agent's instructions.
const instructions = "_instructions"

// normalizeName returns a name of a Python or TypeScript function as models see it.
func normalizeName(name string) string {
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	return strings.Join(parts, "_")
}

// annotations holds what "raddle:" comments say about a function.
type annotations struct {
	effect  tool.Effect
	inDoubt tool.Doubt
}

// addAnnotation adds the text of one annotation: an effect, "in-doubt" and a choice, or
// both with a comma between them. It returns why the text is not valid, or "".
func (e *annotations) addAnnotation(text string) (problem string) {
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if choice, ok := strings.CutPrefix(part, "in-doubt"); ok {
			d, known := tool.ParseDoubt(strings.TrimSpace(choice))
			if !known {
				return fmt.Sprintf("'%s' is unknown: write in-doubt %s", part, strings.Join(tool.Doubts, ", in-doubt "))
			}
			e.inDoubt = d
			continue
		}
		switch name := tool.Effect(part); name {
		case tool.ReadOnly, tool.Idempotent, tool.Dangerous:
			e.effect = name
		default:
			return fmt.Sprintf("the effect '%s' is unknown: write read-only, idempotent, dangerous, or in-doubt %s", part, strings.Join(tool.Doubts, "|"))
		}
	}
	return ""
}

// findAnnotation returns what follows "raddle:" in the text of a comment.
func findAnnotation(comment string) (text string, ok bool) {
	text, ok = strings.CutPrefix(strings.TrimSpace(comment), "raddle:")
	return strings.TrimSpace(text), ok
}
