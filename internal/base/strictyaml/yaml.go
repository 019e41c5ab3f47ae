package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"raddle.dev/internal/base/wording"
)

// MaxFileSize is the size above which [Read] rejects a file.
const MaxFileSize = 4 << 20

// Document is one YAML file: its tree, in which unusable nodes are marked, and
// the problems that were found.
type Document struct {
	Path string
	text []byte
	Root *yaml.Node // nil: only comments, or a fatal problem
	// Replaced are keys that the file may not have, with what to do instead, for the faults of ReadKeys.
	Replaced map[string]string
	Problems
}

// Problems collects findings on the reading of one file.
type Problems struct {
	List  []Finding
	Fatal bool // the text is not YAML
}

func (p *Problems) Add(f Finding) {
	f.Severity = SeverityError
	f.Class = ClassParse
	if !p.isFull() {
		p.List = append(p.List, f)
	}
}

// isFull reports whether further findings would be dropped.
func (p *Problems) isFull() bool { return len(p.List) >= MaxFindings }

// Read parses the text of a file of at most MaxFileSize bytes that must contain one YAML document.
func Read(path string, text []byte) *Document { return ReadUpTo(path, text, MaxFileSize) }

// ReadUpTo parses the text of a file of at most limit bytes that must contain one YAML document.
func ReadUpTo(path string, text []byte, limit int) *Document {
	d := &Document{Path: path, text: text}
	if f, ok := findUnreadableText(text, limit); ok {
		d.recordFatal(f)
		return d
	}
	root, f := loadYAML(text)
	if f != nil {
		d.recordFatal(*f)
		return d
	}
	if root != nil && !IsEmpty(root) {
		d.Root = root
		inspectTree(d)
	}
	return d
}

// loadYAML returns the only document of a text, or nil if there is none.
func loadYAML(text []byte) (root *yaml.Node, fault *Finding) {
	loader, err := yaml.NewLoader(bytes.NewReader(acceptVersion(text)))
	if err != nil {
		return nil, new(syntaxFinding(text, err))
	}
	var first, second yaml.Node
	if err := loader.Load(&first); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, new(syntaxFinding(text, err))
	}
	switch err := loader.Load(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, new(syntaxFinding(text, err))
	default:
		return nil, &Finding{
			Code: "yaml-documents", Message: "the file contains more than one YAML document",
			Hint: "remove everything from the second --- on",
			Pos:  Pos{Line: second.Line, Col: second.Column},
		}
	}
	if len(first.Content) != 1 {
		return nil, nil
	}
	return first.Content[0], nil
}

// acceptVersion changes the directive %YAML 1.2 to 1.1, the only version that
// the library accepts. The version has no effect there, because scalars are
// resolved in this package.
func acceptVersion(text []byte) []byte {
	for at := 0; at < len(text); {
		line, _, _ := bytes.Cut(text[at:], []byte{'\n'})
		words := bytes.Fields(bytes.TrimPrefix(line, []byte("\ufeff")))
		switch {
		case len(words) > 1 && string(words[0]) == "%YAML" && string(words[1]) == "1.2":
			changed := bytes.Clone(text)
			changed[at+bytes.Index(line, []byte("1.2"))+2] = '1'
			return changed
		case len(words) > 0 && words[0][0] != '#' && words[0][0] != '%':
			return text
		}
		at += len(line) + 1
	}
	return text
}

// recordFatal records the problem that ends the reading.
func (d *Document) recordFatal(f Finding) {
	d.Fatal = true
	f.Pos.File = d.Path
	d.Add(f)
}

func IsEmpty(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode {
		return false
	}
	v, ok := DecodeScalar(n)
	return ok && v == nil
}

// findUnreadableText finds a problem that prevents the parser from reading the text,
// and for which the parser would give no position.
func findUnreadableText(text []byte, limit int) (Finding, bool) {
	if len(text) > limit {
		return Finding{
			Code:    "file-too-large",
			Message: fmt.Sprintf("the file has %d bytes; it may have at most %d (%d MiB)", len(text), limit, limit>>20),
			Hint:    "move large texts into files that a script or rag node reads",
			Pos:     Pos{Line: 1, Col: 1},
		}, true
	}
	line := 1
	lineStart := 0
	for i := 0; i < len(text); {
		r := rune(text[i])
		size := 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[i:])
		}
		if r == utf8.RuneError && size == 1 || !isPrintable(r) {
			col := 1 + utf8.RuneCount(text[lineStart:i])
			return badCharacter(text, r, size, Pos{Line: line, Col: col}), true
		}
		i += size
		if r == '\n' {
			line = line + 1
			lineStart = i
		}
	}
	return Finding{}, false
}

func badCharacter(text []byte, r rune, size int, at Pos) Finding {
	f := Finding{Code: "yaml-characters", Pos: at, Hint: "remove it, or write it as an escape in double quotes"}
	switch {
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		f.Message = "the file is UTF-16, not UTF-8"
		f.Hint = "save it as UTF-8"
	case r == utf8.RuneError && size == 1:
		f.Message = "the file is not valid UTF-8 here"
		f.Hint = "save it as UTF-8"
	default:
		f.Message = fmt.Sprintf("control character U+%04X is not allowed", r)
	}
	return f
}

// isPrintable reports whether YAML allows a character.
func isPrintable(r rune) bool {
	switch {
	case r == '\t' || r == '\n' || r == '\r' || r == 0x85:
		return true
	case r < ' ' || r >= 0x7f && r < 0xa0 || r == 0xfffe || r == 0xffff:
		return false
	}
	return true
}

// syntaxFinding converts an error of the YAML library to a finding.
func syntaxFinding(text []byte, err error) Finding {
	f := Finding{Code: "yaml-syntax", Message: err.Error(), Pos: Pos{Line: 1, Col: 1}, Fix: "look for a quote, comma or bracket that is missing or too many, here or in the line above"}
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		return f
	}
	mark := load.Mark
	context := load.ContextMark
	if mark.Line == 0 {
		mark = context
	}
	f.Message = load.Message
	if load.ContextMsg != "" {
		f.Message = load.ContextMsg + ": " + load.Message
	}
	if mark.Line > 0 {
		f.Pos = Pos{Line: mark.Line, Col: max(mark.Column, 1)}
	}
	if context.Line > 0 && context.Line < mark.Line {
		f.Message = fmt.Sprintf("%s (it began at line %d)", f.Message, context.Line)
	}
	if f.Hint = unquotedHint(text, &f.Pos); f.Hint == "" {
		f.Hint = syntaxHint(text, f)
	}
	return f
}

// unquotedHint searches for a text without quotes that starts with braces, on
// the line of a syntax error or the line before, and moves the position there.
func unquotedHint(text []byte, at *Pos) string {
	for _, n := range []int{at.Line, at.Line - 1} {
		line := lineOf(text, n)
		open := bytes.Index(line, []byte("{{"))
		if open <= 0 || bytes.ContainsAny(line[:open], `"'|>#`) {
			continue
		}
		if end := bytes.Index(line[open:], []byte("}}")); end > 0 {
			*at = Pos{File: at.File, Line: n, Col: 1 + utf8.RuneCount(line[:open])}
			return fmt.Sprintf("quote it: \"%s...\"; YAML reads braces without quotes as a map", wording.CutText(string(line[open:open+end+2]), 60, "..."))
		}
	}
	return ""
}

// syntaxHint guesses the mistake behind a syntax error from its line.
func syntaxHint(text []byte, f Finding) string {
	line := lineOf(text, f.Pos.Line)
	indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
	switch {
	case bytes.ContainsRune(indent, '\t'):
		return "indent with spaces: YAML allows no tabs there"
	case strings.Contains(f.Message, "mapping values are not allowed"):
		return "a text that contains `: ` needs quotes"
	case strings.Contains(f.Message, "cannot start any token"):
		return "a text that starts with @, `, % or a tab needs quotes"
	}
	return ""
}

// lineOf returns the n-th line of a text, counted from 1, without its line break.
func lineOf(text []byte, n int) []byte {
	for ; n > 1; n-- {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			return nil
		}
		text = text[end+1:]
	}
	line, _, _ := bytes.Cut(text, []byte{'\n'})
	return line
}

// HoldsMapping reports whether the file contains fields. An empty mapping
// counts.
func (d *Document) HoldsMapping() bool {
	if d.Root == nil || ResolveAlias(d.Root).Kind == yaml.MappingNode {
		return true
	}
	if !IsBroken(d.Root) {
		d.Add(Finding{
			Code: "invalid-type", Pos: Pos{d.Path, d.Root.Line, d.Root.Column},
			Message: fmt.Sprintf("invalid type: %s, expected a map", describeNode(d.Root)),
		})
	}
	return false
}

// ReadMapping returns the members of the whole file. Its position is the top of the
// file.
func (d *Document) ReadMapping() Mapping { return Mapping{Pos: Pos{d.Path, 1, 1}, Node: d.Root} }
