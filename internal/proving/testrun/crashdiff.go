package testrun

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/wording"
)

// compare returns the differences of a killed run, b, from this one, in words.
func (k *killedRun) compare(b *killedRun) (list []string) {
	differ := func(what, x, y string) {
		if x, y = k.cleanValue(x), b.cleanValue(y); x != y {
			x, y = quoteDifference(x, y)
			list = append(list, fmt.Sprintf("%s is %s, and without a crash %s", what, y, x))
		}
	}
	if b.over {
		differ("the status", k.result.Status, b.result.Status) // the journal has the error with other words
	} else {
		differ("the status", k.result.Status+errorSuffix(k.result), b.result.Status+errorSuffix(b.result))
	}
	differ("the output", k.result.Output, b.result.Output)
	differ("the exit code", fmt.Sprint(k.result.ExitCode), fmt.Sprint(b.result.ExitCode))
	differ("the open question", promptsOf(k.questions), promptsOf(b.questions))
	x := stateTexts(k.result.State)
	y := stateTexts(b.result.State)
	if b.over {
		x = nil
		y = nil
	}
	for _, key := range slices.Sorted(maps.Keys(mergeKeys(x, y))) {
		differ("the state's "+key, x[key], y[key])
	}
	for _, name := range slices.Sorted(maps.Keys(mergeKeys(k.files, b.files))) {
		x, inA := k.files[name]
		y, inB := b.files[name]
		switch {
		case !inB:
			list = append(list, "the file "+name+" is missing")
		case !inA:
			list = append(list, "the file "+name+" is there only after a crash")
		case strings.Count(x, "\n") != strings.Count(y, "\n"):
			list = append(list, fmt.Sprintf("the file %s has %d lines, and without a crash %d", name, strings.Count(y, "\n"), strings.Count(x, "\n")))
		default:
			differ("the file "+name, x, y)
		}
	}
	return list
}

// instants matches times, which differ between any two runs.
var instants = pattern.CompileLater(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`)

// fileTimes matches the time of a file that a tool has read, as a message has it: see [tool.SeenFile]. It may be part
// of a text of JSON that is itself in a text.
var fileTimes = pattern.CompileLater(`("stamp\\*":\\*"\d+) \d+`)

// cleanValue replaces what differs between any two runs: the name of the scratch directory, and times.
func (k *killedRun) cleanValue(text string) string {
	text = strings.ReplaceAll(text, k.scratch, "SCRATCH")
	text = fileTimes().ReplaceAllString(text, "$1 TIME")
	return instants().ReplaceAllString(text, "TIME")
}

// explain returns how a killed run, b, differs from this one, which was not killed.
func (k *killedRun) explain(b *killedRun) []string {
	list := k.compare(b)
	for _, name := range b.kill.repeated {
		list = append(list, name+" ran again although its result was saved")
	}
	return list
}

func errorSuffix(r *Result) string {
	if r.Error == "" {
		return ""
	}
	return " (" + r.Error + ")"
}

// Limits of the text that is shown of a value, in characters.
const (
	maxQuoted = 120
	maxBefore = 30 // before the first difference
)

// quoteDifference quotes two values, long ones from shortly before the first difference on.
func quoteDifference(x, y string) (string, string) {
	a := []rune(x)
	b := []rune(y)
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	from := max(0, same-maxBefore)
	if max(len(a), len(b)) <= maxQuoted {
		from = 0
	}
	quote := func(text []rune) string {
		short := string(text[from:])
		if from > 0 {
			short = "…" + short
		}
		return strconv.Quote(wording.CutText(short, maxQuoted, "…"))
	}
	return quote(a), quote(b)
}

// promptsOf returns the texts of questions.
func promptsOf(list []graph.Question) string {
	var texts []string
	for _, q := range list {
		texts = append(texts, q.Prompt)
	}
	return strings.Join(texts, "\n")
}

func mergeKeys(x, y map[string]string) map[string]bool {
	all := map[string]bool{}
	for k := range x {
		all[k] = true
	}
	for k := range y {
		all[k] = true
	}
	return all
}

// stateTexts returns the values of a state as texts.
func stateTexts(o *jsonvalue.Object) map[string]string {
	texts := map[string]string{}
	if o == nil {
		return texts
	}
	for k, v := range o.All() {
		text, err := jsonvalue.Append(nil, v)
		if err != nil {
			text = fmt.Append(nil, v)
		}
		texts[k] = string(text)
	}
	return texts
}

// sqliteHeader is at the start of databases, such as knowledge bases. Their bytes differ where their content does not.
const sqliteHeader = "SQLite format 3\x00"

// readTree returns the contents of the files below directories of a root, without databases.
func readTree(root string, dirs ...string) (map[string]string, error) {
	files := map[string]string{}
	var first error
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, e os.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			text, err := plainfile.Read(path, maxBytes)
			if err != nil || bytes.HasPrefix(text, []byte(sqliteHeader)) {
				return err
			}
			name, err := filepath.Rel(filepath.Join(root, dir), path)
			files[filepath.ToSlash(name)] = string(text)
			return err
		})
		first = errors.Join(first, err)
	}
	return files, first
}
