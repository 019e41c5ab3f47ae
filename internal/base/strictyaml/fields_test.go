package strictyaml

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// readFields gives the fields of a text to a function and returns what is wrong with them, one finding on each line, in the order of the text.
func readFields(t *testing.T, text string, read func(fs *Fields)) string {
	t.Helper()
	doc := Read("f.yaml", []byte(text))
	if len(doc.List) > 0 {
		t.Fatalf("%q: %v", text, doc.List)
	}
	fs := NewFields(&Problems{}, doc.ReadMapping(), "top")
	read(fs)
	list := slices.Clone(fs.Problems.List)
	SortFindings(list)
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, "%s %s %s", f.Pos, f.Code, f.Message)
		for _, more := range []string{f.Hint, f.Fix} {
			if more != "" {
				b.WriteString(" (" + more + ")")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// show writes down a value, and that of a pointer.
func show(v any) string {
	switch v := v.(type) {
	case *Seconds:
		if v != nil {
			return fmt.Sprint("set ", *v)
		}
	case *int:
		if v != nil {
			return fmt.Sprint("set ", *v)
		}
	case *float64:
		if v != nil {
			return fmt.Sprint("set ", *v)
		}
	case *bool:
		if v != nil {
			return fmt.Sprint("set ", *v)
		}
	default:
		return fmt.Sprintf("%#v", v)
	}
	return "unset"
}

// TestFields reads each type of field from each kind of value: what is wrong with it, and what is read nevertheless.
func TestFields(t *testing.T) {
	texts := func(p presence) func(fs *Fields) any { return func(fs *Fields) any { return fs.ReadTexts("x", p) } }
	text := func(p presence) func(fs *Fields) any { return func(fs *Fields) any { return fs.ReadText("x", p) } }
	seconds := func(fs *Fields) any { return fs.ReadSeconds("x", 7) }
	count := func(fs *Fields) any { return fs.ReadCount("x", 7) }
	flag := func(fs *Fields) any { return fs.ReadFlag("x", true) }
	const missing = "1:1 missing-field top: missing field `x` (add `x: ...`)\n"
	for _, c := range []struct {
		name string
		read func(fs *Fields) any
		text string
		want string
		said string // without the name of the file
	}{
		{"a text", text(Required), `x: a b`, `"a b"`, ""},
		{"a text that is quoted", text(Required), `x: "1"`, `"1"`, ""},
		{"a text that is a number", text(Required), `x: 1`, `""`, "1:4 invalid-type top.x: invalid type: integer `1`, expected a string (quote it: \"1\")\n"},
		{"a text that is a list", text(Required), `x: [a]`, `""`, "1:4 invalid-type top.x: invalid type: sequence, expected a string\n"},
		{"a text that is missing", text(Required), `y: 1`, `""`, missing},
		{"a text that may be missing", text(Optional), `y: 1`, `""`, ""},
		{"a text that is null", text(Optional), `x: null`, `""`, ""},
		{"a text that must be, and is null", text(Required), `x: ~`, `""`, "1:4 invalid-type top.x: invalid type: unit value, expected a string\n"},
		{"a plain text", func(fs *Fields) any { return fs.ReadPlainText("x") }, `x: 1.50`, `"1.50"`, ""},
		{"alternatives", func(fs *Fields) any { return fs.ReadAlternatives("x") }, `x: [a, b]`, `"a,b"`, ""},
		{"one alternative", func(fs *Fields) any { return fs.ReadAlternatives("x") }, `x: a`, `"a"`, ""},
		{"no alternative", func(fs *Fields) any { return fs.ReadAlternatives("x") }, `y: a`, `""`, ""},
		{"texts", texts(Required), `x: [a, "2"]`, `[]string{"a", "2"}`, ""},
		{"no texts", texts(Required), `x: []`, `[]string{}`, ""},
		{"texts that are unset", texts(Optional), `x:`, `[]string(nil)`, ""},
		{"texts with a number", texts(Required), `x: [a, 2]`, `[]string{"a", ""}`, "1:8 invalid-type top.x[1]: invalid type: integer `2`, expected a string (quote it: \"2\")\n"},
		{"texts that are a text", texts(Required), `x: a`, `[]string(nil)`, "1:4 invalid-type top.x: invalid type: string \"a\", expected a sequence (write a list: `x: [a, b]`)\n"},
		{"pairs", func(fs *Fields) any { return fs.ReadPairs("x", Required) }, `x: {b: 1x, a: y}`, `[]strictyaml.Pair{strictyaml.Pair{Key:"b", Value:"1x"}, strictyaml.Pair{Key:"a", Value:"y"}}`, ""},
		{"pairs with a list", func(fs *Fields) any { return fs.ReadPairs("x", Required) }, `x: {b: [1]}`, `[]strictyaml.Pair{strictyaml.Pair{Key:"b", Value:""}}`, "1:8 invalid-type top.x.b: invalid type: sequence, expected a string\n"},
		{"pairs that are a list", func(fs *Fields) any { return fs.ReadPairs("x", Required) }, `x: [a]`, `[]strictyaml.Pair(nil)`, "1:4 invalid-type top.x: invalid type: sequence, expected a map (write names with values: `x: {name: value}`)\n"},
		{"a target", func(fs *Fields) any { return fs.ReadNext() }, `next: 1`, `[]string{"1"}`, ""},
		{"targets", func(fs *Fields) any { return fs.ReadNext() }, `next: [a, b]`, `[]string{"a", "b"}`, ""},
		{"no targets", func(fs *Fields) any { return fs.ReadNext() }, `x: 1`, `[]string(nil)`, ""},
		{"targets that are a map", func(fs *Fields) any { return fs.ReadNext() }, `next: {a: b}`, `[]string(nil)`, "1:7 invalid-type top.next: invalid type: map, expected a string or a list of strings\n"},
		{"a map", func(fs *Fields) any { return fs.ReadMapping("x") != nil }, `x: {a: b}`, `true`, ""},
		{"a map that is a text", func(fs *Fields) any { return fs.ReadMapping("x") != nil }, `x: a`, `false`, "1:4 invalid-type top.x: invalid type: string \"a\", expected a map (write names with values: `x: {name: value}`)\n"},
		{"anything", func(fs *Fields) any { return fs.ReadAny("x") }, `x: [1, a]`, `[]interface {}{1, "a"}`, ""},
		{"seconds", seconds, `x: 90`, `0x5a`, ""},
		{"seconds by default", seconds, `y: 90`, `0x7`, ""},
		{"seconds that are null", seconds, `x:`, `0x0`, "1:3 invalid-type top.x: invalid type: unit value, expected u64 (a whole number of seconds) (write the seconds: `x: 300`)\n"},
		{"seconds as a duration", seconds, `x: 2m`, `0x0`, "1:4 invalid-type top.x: invalid type: string \"2m\", expected u64 (a whole number of seconds) (write the seconds: `x: 120`)\n"},
		{"seconds below one", seconds, `x: 2ms`, `0x0`, "1:4 invalid-type top.x: invalid type: string \"2ms\", expected u64 (a whole number of seconds) (write the seconds: `x: 300`)\n"},
		{"negative seconds", seconds, `x: -1`, `0x0`, "1:4 invalid-value top.x: invalid value: integer `-1`, expected u64 (a whole number of seconds)\n"},
		{"no seconds", seconds, `x: 0`, `0x0`, ""},
		{"optional seconds", func(fs *Fields) any { return fs.ReadOptionalSeconds("x") }, `x: 0`, `set 0`, ""},
		{"optional seconds that are null", func(fs *Fields) any { return fs.ReadOptionalSeconds("x") }, `x: null`, `unset`, ""},
		{"a count", count, `x: 3`, `3`, ""},
		{"a count with a fraction", count, `x: 3.5`, `0`, "1:4 invalid-type top.x: invalid type: floating point `3.5`, expected usize (a whole number) (write a whole number: `x: 3`)\n"},
		{"a count that is too large", count, `x: 18446744073709551615`, `9223372036854775807`, ""},
		{"an optional count", func(fs *Fields) any { return fs.ReadOptionalCount("x") }, `x: 2`, `set 2`, ""},
		{"an unset count", func(fs *Fields) any { return fs.ReadOptionalCount("x") }, `y: 2`, `unset`, ""},
		{"a number", func(fs *Fields) any { return fs.ReadFloat("x") }, `x: 2`, `set 2`, ""},
		{"a number with a fraction", func(fs *Fields) any { return fs.ReadFloat("x") }, `x: 2.5`, `set 2.5`, ""},
		{"a number as a text", func(fs *Fields) any { return fs.ReadFloat("x") }, `x: "2"`, `unset`, "1:4 invalid-type top.x: invalid type: string \"2\", expected f64 (a number) (write a number: `x: 0.7`)\n"},
		{"a flag", flag, `x: false`, `false`, ""},
		{"a flag by default", flag, `y: false`, `true`, ""},
		{"a flag that is a word", flag, `x: off`, `false`, "1:4 invalid-type top.x: invalid type: string \"off\", expected a boolean\n"},
		{"an optional flag", func(fs *Fields) any { return fs.ReadOptionalFlag("x") }, `x: true`, `set true`, ""},
		{"an unset flag", func(fs *Fields) any { return fs.ReadOptionalFlag("x") }, `x: ~`, `unset`, ""},
		{"a switch", func(fs *Fields) any { return fs.ReadSwitch("x") }, `x: On`, `set true`, ""},
		{"a switch that is off", func(fs *Fields) any { return fs.ReadSwitch("x") }, `x: no`, `set false`, ""},
		{"a switch that is quoted", func(fs *Fields) any { return fs.ReadSwitch("x") }, `x: "on"`, `set false`, "1:4 invalid-type top.x: invalid type: string \"on\", expected a boolean\n"},
		{"an alias", text(Required), "y: &a b\nx: *a", `"b"`, ""},
		{"whether there is a value", func(fs *Fields) any { return fs.HasValue("x") }, `x: 0`, `true`, ""},
		{"whether null is a value", func(fs *Fields) any { return fs.HasValue("x") }, `x: null`, `false`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			said := readFields(t, c.text, func(fs *Fields) { got = show(c.read(fs)) })
			if got != c.want {
				t.Errorf("%s is read as %s, want %s", c.text, got, c.want)
			}
			if said = strings.ReplaceAll(said, "f.yaml:", ""); said != c.said {
				t.Errorf("%s:\n%swant:\n%s", c.text, said, c.said)
			}
		})
	}
}

// TestForgivingFields reads what a config.yaml accepts and a graph.yaml does not.
func TestForgivingFields(t *testing.T) {
	said := readFields(t, "a: on\nb: No\nc:\nd:\ne: maybe\nf: 12\n", func(fs *Fields) {
		fs.Forgiving, fs.Plain = true, true
		got := fmt.Sprint(fs.ReadFlag("a", false), fs.ReadFlag("b", true), fs.ReadFlag("c", true), fs.ReadCount("d", 4), fs.ReadFlag("e", true), fs.ReadText("f", Required))
		if got != "true false true 4 false12" {
			t.Errorf("read %s", got)
		}
	})
	if said != "f.yaml:5:4 invalid-type top.e: invalid type: string \"maybe\", expected a boolean\n" {
		t.Error(said)
	}
}

// TestUnknownKeys lists what no field was read for, with the nearest known key.
func TestUnknownKeys(t *testing.T) {
	doc := Read("f.yaml", []byte("name: a\nprmpt: b\nwholly_other: c\n"))
	fs := NewFields(&Problems{}, doc.ReadMapping(), "")
	fs.ReadText("name", Required)
	fs.ReadText("prompt", Optional)
	var got []string
	for _, f := range fs.UnknownKeys("answer", func(key string) string { return map[string]string{"wholly_other": "it is gone"}[key] }) {
		got = append(got, fmt.Sprint(f.Pos, " ", f.Code, " ", f.Message, " ", f.Hint))
	}
	if len(got) != 2 || !strings.Contains(got[0], "f.yaml:2:1 unknown-key") || !strings.Contains(got[0], "prompt") || !strings.Contains(got[1], "it is gone") {
		t.Errorf("%q", got)
	}
}

// TestFilesThatCannotBeRead reports all that is wrong with a file, and reads what is right in it.
func TestFilesThatCannotBeRead(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string // parts of the findings, in their order
	}{
		{"nothing", "", nil},
		{"a key twice", "a: 1\nb: 2\na: 3\n", []string{"f.yaml:3:1"}},
		{"a tab", "a:\n\tb: 1\n", []string{"f.yaml:2"}},
		{"an open bracket", "a: [1\n", []string{"f.yaml:"}},
		{"two documents", "a: 1\n---\nb: 2\n", []string{"f.yaml:2:1"}},
		{"no text", "a: \xff\n", []string{"f.yaml:1"}},
		{"a list", "- a\n", nil},
		{"an alias to nothing", "a: *b\n", []string{"f.yaml:1:4"}},
		{"a tag that is wrong", "a: !!int x\n", []string{"f.yaml:1:4"}},
		{"a tag that is unknown", "a: !thing x\n", []string{"f.yaml:1:4"}},
		{"too large", "a: " + strings.Repeat("x", 200) + "\n", []string{"f.yaml"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc := ReadUpTo("f.yaml", []byte(c.text), 100)
			if len(doc.List) != len(c.want) {
				t.Fatalf("%d findings, want %d: %v", len(doc.List), len(c.want), doc.List)
			}
			for i, f := range doc.List {
				if !strings.HasPrefix(f.Pos.String(), c.want[i]) || f.Message == "" || f.Code == "" {
					t.Errorf("%s %s %q, want it at %s", f.Pos, f.Code, f.Message, c.want[i])
				}
			}
			if c.name == "a list" && doc.HoldsMapping() {
				t.Error("a list is taken for a map")
			}
		})
	}
}

// TestReportIsBounded adds more findings than a report lists.
func TestReportIsBounded(t *testing.T) {
	r := Report{Class: ClassAdvice}
	for range MaxFindings + 5 {
		r.Add(Finding{Severity: SeverityWarning, Message: "again"})
	}
	if last := r.Findings[len(r.Findings)-1]; len(r.Findings) != MaxFindings+1 || last.Code != "too-many-findings" {
		t.Errorf("%d findings, the last is %v", len(r.Findings), last)
	}
}
