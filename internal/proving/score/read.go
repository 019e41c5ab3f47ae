package score

import (
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/proving/testcase"
)

// Read reads a file with scorers: a list, or a mapping with `scorers`. If it has errors, the error is a
// [*strictyaml.FileError] with all of them.
func Read(path string, text []byte) ([]*Scorer, error) {
	d := strictyaml.Read(path, text)
	var list []*Scorer
	switch {
	case d.Fatal:
	case d.Root == nil:
		d.ReportFault(nil, "write `scorers: [exact]`", "the file is empty; it must have a list of scorers")
	case strictyaml.ResolveAlias(d.Root).Kind == yaml.MappingNode:
		d.ReadKeys(d.Root, "the file", []string{"scorers"}, func(_ string, value *yaml.Node) { list = ReadList(d, value) })
	default:
		list = ReadList(d, d.Root)
	}
	if len(d.List) > 0 {
		strictyaml.SortFindings(d.List)
		return nil, &strictyaml.FileError{Findings: d.List}
	}
	return list, nil
}

// ReadList reads a list of scorers from a part of a file. The document gets what is wrong with it.
func ReadList(d *strictyaml.Document, n *yaml.Node) []*Scorer {
	r := &reader{Document: d}
	before := len(d.List)
	var list []*Scorer
	names := map[string]bool{}
	for _, item := range d.ReadItems(n, "scorers") {
		s := r.readScorer(item)
		if s == nil {
			continue
		}
		if names[s.Name] {
			d.ReportFault(item, "give it a `name`", "another scorer has the name %q", s.Name)
		}
		names[s.Name] = true
		list = append(list, s)
	}
	if len(list) == 0 && len(d.List) == before {
		d.ReportFault(n, "", "the list of scorers is empty")
	}
	return list
}

// reader reads scorers and collects what is wrong.
type reader struct{ *strictyaml.Document }

// readScorer reads a scorer: its kind, or a mapping of its kind to what it needs, with a name and what it scores. It
// returns nil after a fault.
func (r *reader) readScorer(n *yaml.Node) *Scorer {
	n = strictyaml.ResolveAlias(n)
	s := &Scorer{Pos: strictyaml.Pos{File: r.Path, Line: n.Line, Col: n.Column}}
	before := len(r.List)
	var arg *yaml.Node
	if n.Kind == yaml.ScalarNode {
		s.Kind = n.Value
		if !slices.Contains(allKinds, s.Kind) {
			r.ReportFault(n, wording.SuggestNearest(s.Kind, allKinds, ""), "unknown scorer %q; the scorers are %s", s.Kind, strings.Join(allKinds, ", "))
			return nil
		}
	} else {
		r.ReadKeys(n, "a scorer", append([]string{"name", "of"}, allKinds...), func(key string, value *yaml.Node) {
			switch {
			case key == "name":
				s.Name = r.ReadName(value, "the name")
			case key == "of":
				s.of = strings.TrimPrefix(r.ReadName(value, "of"), "state.")
			case s.Kind != "":
				r.ReportFault(value, "write each of them as an entry of its own", "one scorer cannot be %s and %s", s.Kind, key)
			default:
				s.Kind = key
				arg = value
			}
		})
	}
	if len(r.List) > before {
		return nil
	}
	if s.Kind == "" {
		r.ReportFault(n, "write for example `- exact`", "the scorer says not what it does")
		return nil
	}
	if arg == nil || strictyaml.IsEmpty(strictyaml.ResolveAlias(arg)) {
		arg = nil
	}
	if s.of != "" && slices.Contains(kindsOfRun, s.Kind) {
		r.ReportFault(n, "remove `of`", "the scorer %s scores the run, and no value", s.Kind)
	}
	if s.Name == "" {
		s.Name = s.Kind
	}
	s.work = r.readWork(s, n, arg)
	if len(r.List) > before {
		return nil
	}
	return s
}

// kindsOfRun are the scorers that do not look at a value.
var kindsOfRun = []string{kindPath, kindCalls, kindCost, kindLatency, kindModelCalls, kindToolCalls}

// readWork returns what a scorer does. arg is nil if the file says no more than its kind.
func (r *reader) readWork(s *Scorer, n, arg *yaml.Node) worker {
	if m, ok := limits[s.Kind]; ok {
		return scoreLimit(r.readLimit(s, n, arg), m.unit, m.of)
	}
	if arg == nil {
		return r.readPlain(s, n)
	}
	switch s.Kind {
	case kindExact:
		return scoreExact(strictyaml.DecodeValue(arg))
	case kindContains:
		return scoreContains(strictyaml.DecodeValue(arg))
	case kindSubset:
		return scoreSubset(strictyaml.DecodeValue(arg))
	case kindRegexp:
		return r.readRegexp(arg)
	case kindSchema:
		// a matcher of test cases with the key schema
		m := testcase.ReadMatcher(r.Document, &yaml.Node{
			Kind:    yaml.MappingNode,
			Tag:     "!!map",
			Line:    arg.Line,
			Column:  arg.Column,
			Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: kindSchema, Line: arg.Line, Column: arg.Column}, arg},
		})
		return scoreMatcher(&m)
	case kindNumber:
		return r.readTolerance(arg)
	case kindPath:
		return scorePath(testcase.ReadPath(r.Document, arg), false)
	case kindCalls:
		return scorePath(testcase.ReadCalls(r.Document, arg), true)
	case kindScript:
		path := r.ReadName(arg, "the script")
		if path != "" && !filepath.IsLocal(filepath.FromSlash(path)) {
			r.ReportFault(arg, "put the script next to the file that names it, or below", "the script %q is not beneath the directory of this file", path)
			return nil
		}
		path = filepath.Join(filepath.Dir(r.Path), path)
		if s.Name == kindScript {
			s.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		}
		s.Script = path
		return scoreScript(path)
	case kindJudge:
		return r.readJudge(arg)
	}
	r.ReportFault(arg, "write `- "+s.Kind+"`", "the scorer %s needs nothing more", s.Kind)
	return nil
}

// readPlain returns what a scorer does of which the file says only the kind.
func (r *reader) readPlain(s *Scorer, n *yaml.Node) worker {
	switch s.Kind {
	case kindExpect:
		return scoreExpect
	case kindExact:
		return scoreExact(nil)
	case kindContains:
		return scoreContains(nil)
	case kindRegexp:
		return scoreRegexp(nil)
	case kindSubset:
		return scoreSubset(nil)
	case kindNumber:
		return scoreNumber(0, false)
	case kindDistance:
		return scoreDistance
	}
	r.ReportFault(n, "write `- "+s.Kind+": "+missingHint[s.Kind]+"`", "the scorer %s needs to know more", s.Kind)
	return nil
}

// missingHint is what kinds need.
var missingHint = map[string]string{
	kindSchema:     "{type: object}",
	kindPath:       "[read, write]",
	kindCalls:      "{contains: [read_file]}",
	kindScript:     "scorer.py",
	kindJudge:      "what a good answer is",
	kindCost:       "0.02",
	kindLatency:    "5s",
	kindModelCalls: "3",
	kindToolCalls:  "3",
}

func (r *reader) readRegexp(arg *yaml.Node) worker {
	expr, err := regexp.Compile(r.ReadName(arg, "the pattern"))
	if err != nil {
		r.ReportFault(arg, "the syntax is that of Go: https://pkg.go.dev/regexp/syntax", "the pattern is not a regular expression: %v", err)
		return nil
	}
	return scoreRegexp(expr)
}

// readTolerance reads a number, or a share in percent.
func (r *reader) readTolerance(arg *yaml.Node) worker {
	text := r.ReadName(arg, "the tolerance")
	number, share := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || f < 0 || math.IsInf(f, 0) || math.IsNaN(f) {
		r.ReportFault(arg, "write for example 0.01 or 1%", "%q is not a tolerance", text)
	}
	if share {
		f /= 100
	}
	return scoreNumber(f, share)
}

// readLimit reads the limit of a measure: a number, or a length of time.
func (r *reader) readLimit(s *Scorer, n, arg *yaml.Node) float64 {
	if arg == nil {
		r.readPlain(s, n)
		return 0
	}
	text := r.ReadName(arg, "the limit")
	f, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil && s.Kind == kindLatency {
		span, spanErr := spec.ParseSpan(text)
		err = spanErr
		f = span.Seconds()
	}
	if err != nil || !(f > 0) || math.IsInf(f, 0) {
		r.ReportFault(arg, "write for example `- "+s.Kind+": "+missingHint[s.Kind]+"`", "%q is not a limit above 0", text)
		return 1
	}
	return f
}

// readJudge reads a rubric, or a mapping with it and a model.
func (r *reader) readJudge(arg *yaml.Node) worker {
	var j rubric
	if strictyaml.ResolveAlias(arg).Kind != yaml.MappingNode {
		j.text = r.ReadName(arg, "the rubric")
		return scoreJudge(j)
	}
	before := len(r.List)
	r.ReadKeys(arg, "the judge", []string{"rubric", "model"}, func(key string, value *yaml.Node) {
		if key == "model" {
			j.model = r.ReadName(value, "the model")
			return
		}
		j.text = r.ReadName(value, "the rubric")
	})
	if j.text == "" && len(r.List) == before {
		r.ReportFault(arg, "add `rubric: what a good answer is`", "the judge has no rubric")
	}
	return scoreJudge(j)
}
