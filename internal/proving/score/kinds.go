package score

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/proving/testcase"
)

// The names of scorers in files.
const (
	kindExpect     = "expect"
	kindExact      = "exact"
	kindContains   = "contains"
	kindRegexp     = "regexp"
	kindSchema     = "schema"
	kindSubset     = "subset"
	kindNumber     = "number"
	kindDistance   = "distance"
	kindPath       = "path"
	kindCalls      = "calls"
	kindCost       = "cost"
	kindLatency    = "latency"
	kindModelCalls = "model_calls"
	kindToolCalls  = "tool_calls"
	kindScript     = "script"
	kindJudge      = "judge"
)

// scoreExpect says whether the value is as the item expects.
func scoreExpect(c *work) (Score, bool, error) {
	if c.item.Expect == nil {
		return Score{}, false, nil
	}
	return passUnless(c.item.Expect.Check("output", c.value, true)), true, nil
}

// wantOr returns what a scorer compares with: the value that its list names, or what the item expects.
func (c *work) wantOr(own any) (want any, ok bool) {
	want = own
	if want == nil {
		want = c.item.Expected
	}
	return want, want != nil
}

// scoreExact says whether the value is the expected one.
func scoreExact(own any) worker {
	return func(c *work) (Score, bool, error) {
		want, ok := c.wantOr(own)
		if !ok {
			return Score{}, false, nil
		}
		m := testcase.Matcher{Equal: &want}
		return passUnless(m.Check("output", c.value, true)), true, nil
	}
}

// scoreContains says how many of the expected texts the value contains.
func scoreContains(own any) worker {
	return func(c *work) (Score, bool, error) {
		want, ok := c.wantOr(own)
		if !ok {
			return Score{}, false, nil
		}
		parts, isList := want.([]any)
		if !isList {
			parts = []any{want}
		}
		text := c.text()
		var missing []string
		for _, part := range parts {
			if !strings.Contains(text, testcase.Text(part)) {
				missing = append(missing, show(part))
			}
		}
		if len(missing) == 0 {
			return Score{Value: 1}, true, nil
		}
		found := len(parts) - len(missing)
		return Score{
			Value:  float64(found) / float64(len(parts)),
			Reason: fmt.Sprintf("%d of %d; missing: %s", found, len(parts), strings.Join(missing, ", ")),
		}, true, nil
	}
}

// scoreRegexp says whether the value matches a pattern: own, or the one that the item expects.
func scoreRegexp(own *regexp.Regexp) worker {
	return func(c *work) (Score, bool, error) {
		expr := own
		if expr == nil {
			text, ok := c.item.Expected.(string)
			if !ok {
				return Score{}, false, nil
			}
			var err error
			if expr, err = regexp.Compile(text); err != nil {
				return Score{}, false, fmt.Errorf("what item %s expects is not a regular expression: %w", c.item.ID, err)
			}
		}
		return passIf(expr.MatchString(c.text()), "%s does not match %s", show(c.text()), expr), true, nil
	}
}

// scoreMatcher says whether the value fits a matcher.
func scoreMatcher(m *testcase.Matcher) worker {
	return func(c *work) (Score, bool, error) {
		return passUnless(m.Check("output", c.value, true)), true, nil
	}
}

// scoreSubset says how much of the expected data the value has, as JSON: each expected value that is not an object counts
// once.
func scoreSubset(own any) worker {
	return func(c *work) (Score, bool, error) {
		want, ok := c.wantOr(own)
		if !ok {
			return Score{}, false, nil
		}
		got := c.value
		if text, isText := got.(string); isText {
			parsed, err := jsonvalue.Parse([]byte(stripFence(text)))
			if err != nil {
				return Score{Reason: "the output is not JSON: " + show(text)}, true, nil
			}
			got = parsed
		}
		var s subset
		s.compare("", want, got)
		return Score{
			Value:  float64(s.found) / float64(max(1, s.found+len(s.missing))),
			Reason: strings.Join(s.missing, "; "),
		}, true, nil
	}
}

// A subset counts which parts of a value another one has.
type subset struct {
	found   int
	missing []string
}

func (s *subset) compare(path string, want, got any) {
	object, isObject := want.(*jsonvalue.Object)
	if !isObject {
		if jsonvalue.Equal(want, got) {
			s.found++
			return
		}
		s.missing = append(s.missing, fmt.Sprintf("%s: expected %s, got %s", cmp.Or(path, "the output"), show(want), show(got)))
		return
	}
	has, ok := got.(*jsonvalue.Object)
	if !ok {
		has = &jsonvalue.Object{}
	}
	for key, part := range object.All() {
		at := strings.TrimPrefix(path+"."+key, ".")
		value, ok := has.Get(key)
		if !ok {
			s.missing = append(s.missing, at+" is missing")
			continue
		}
		s.compare(at, part, value)
	}
}

// stripFence returns the inside of a text that is one fenced block.
func stripFence(text string) string {
	text = strings.TrimSpace(text)
	if inside, ok := strings.CutPrefix(text, "```"); ok {
		if _, body, ok := strings.Cut(inside, "\n"); ok {
			return strings.TrimSpace(strings.TrimSuffix(body, "```"))
		}
	}
	return text
}

// numbers finds numbers in a text, also with commas between thousands.
var numbers = pattern.CompileLater(`[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?\.?\d+(?:[eE][-+]?\d+)?`)

// findNumber returns the number that a value is, or the last one in a text.
func findNumber(v any) (float64, bool) {
	if f, ok := jsonvalue.AsFloat(v); ok {
		return f, true
	}
	all := numbers().FindAllString(testcase.Text(v), -1)
	if len(all) == 0 {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(all[len(all)-1], ",", ""), 64)
	return f, err == nil
}

// scoreNumber says whether the last number of the value is the expected one, within a tolerance that is absolute, or a
// share of the expected number.
func scoreNumber(tolerance float64, share bool) worker {
	return func(c *work) (Score, bool, error) {
		if c.item.Expected == nil {
			return Score{}, false, nil
		}
		want, ok := findNumber(c.item.Expected)
		if !ok {
			return Score{}, false, fmt.Errorf("item %s expects no number", c.item.ID)
		}
		got, ok := findNumber(c.value)
		if !ok {
			return Score{Reason: "there is no number in " + show(c.text())}, true, nil
		}
		most := tolerance
		if share {
			most *= math.Abs(want)
		}
		near := math.Abs(got-want) <= most*(1+1e-12)
		return passIf(near, "expected %v, got %v", want, got), true, nil
	}
}

// maxDistance is the number of characters up to which texts are compared letter by letter.
const maxDistance = 10_000

// scoreDistance says how similar the value is to the expected text: 1 less the share of characters to change.
func scoreDistance(c *work) (Score, bool, error) {
	if c.item.Expected == nil {
		return Score{}, false, nil
	}
	want := []rune(strings.TrimSpace(testcase.Text(c.item.Expected)))
	got := []rune(strings.TrimSpace(c.text()))
	if len(want) > maxDistance || len(got) > maxDistance {
		return Score{}, false, fmt.Errorf("texts above %d characters are not compared letter by letter", maxDistance)
	}
	longer := max(len(want), len(got))
	if longer == 0 {
		return Score{Value: 1}, true, nil
	}
	d := countEdits(want, got)
	s := Score{Value: 1 - float64(d)/float64(longer)}
	if d > 0 {
		s.Reason = fmt.Sprintf("%d of %d characters differ", d, longer)
	}
	return s, true, nil
}

// countEdits returns how many characters must be added, removed or replaced to make one text the other.
func countEdits(a, b []rune) int {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a = a[1:]
		b = b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a = a[:len(a)-1]
		b = b[:len(b)-1]
	}
	row := make([]int, len(b)+1)
	for n := range row {
		row[n] = n
	}
	for n, letter := range a {
		before := row[0]
		row[0] = n + 1
		for m, other := range b {
			replaced := before
			if letter != other {
				replaced++
			}
			before = row[m+1]
			row[m+1] = min(replaced, row[m]+1, row[m+1]+1)
		}
	}
	return row[len(b)]
}

// scorePath says whether the nodes ran, or the tools were called, as expected.
func scorePath(s *testcase.Sequence, calls bool) worker {
	return func(c *work) (Score, bool, error) {
		if calls {
			return passUnless(s.Check("calls", c.result.Calls, nil)), true, nil
		}
		return passUnless(s.Check("path", c.result.Path, nil)), true, nil
	}
}

// scoreLimit is 1 up to a limit, and above it the share of the limit in the measure.
func scoreLimit(limit float64, unit string, measure func(r *Result) (value float64, known bool)) worker {
	return func(c *work) (Score, bool, error) {
		got, known := measure(c.result)
		switch {
		case !known:
			return Score{}, false, errors.New("the price of a model is not known")
		case got <= limit:
			return Score{Value: 1}, true, nil
		}
		return Score{Value: limit / got, Reason: fmt.Sprintf("%.4g%s, above %.4g%s", got, unit, limit, unit)}, true, nil
	}
}

// A measured is what a scorer with a limit compares with it.
type measured struct {
	unit string
	of   func(r *Result) (value float64, known bool)
}

var limits = map[string]measured{
	kindCost:       {" dollars", func(r *Result) (float64, bool) { return r.Cost, r.Unpriced == 0 }},
	kindLatency:    {" s", func(r *Result) (float64, bool) { return r.Seconds, true }},
	kindModelCalls: {" model calls", func(r *Result) (float64, bool) { return float64(r.ModelCalls), true }},
	kindToolCalls:  {" tool calls", func(r *Result) (float64, bool) { return float64(len(r.Calls)), true }},
}

// scoreScript runs a script, which gets the item and the result as JSON and prints a score with a reason as JSON.
func scoreScript(path string) worker {
	return func(c *work) (Score, bool, error) {
		input := jsonvalue.NewObject(
			jsonvalue.Member{Key: "item", Value: describeItem(c)},
			jsonvalue.Member{Key: "result", Value: describeResult(c.result)},
		)
		text, err := c.outside.RunScript(c.ctx, path, []byte(jsonvalue.Compact(input)+"\n"))
		if err != nil {
			return Score{}, false, err
		}
		return readScriptScore(path, text)
	}
}

func readScriptScore(path string, text []byte) (Score, bool, error) {
	wrong := func(why string) (Score, bool, error) {
		return Score{}, false, fmt.Errorf(`%s must print {"score": 0.5, "reason": "..."}, with a score from 0 to 1, true, false, or null for none: %s`, path, why)
	}
	v, err := jsonvalue.Parse(bytes.TrimSpace(text))
	if err != nil {
		return wrong("it has printed " + show(string(text)))
	}
	value := v
	var s Score
	if o, ok := v.(*jsonvalue.Object); ok {
		if value, ok = o.Get("score"); !ok {
			return wrong("it has printed no score: " + show(v))
		}
		reason, _ := o.Get("reason")
		s.Reason = strings.Join(strings.Fields(testcase.Text(reason)), " ")
	}
	switch pass := value.(type) {
	case nil:
		return Score{}, false, nil
	case bool:
		if pass {
			s.Value = 1
		}
		return s, true, nil
	}
	f, ok := jsonvalue.AsFloat(value)
	if !ok || math.IsNaN(f) || f < 0 || f > 1 {
		return wrong("the score is " + show(value))
	}
	s.Value = f
	return s, true, nil
}

// describeItem returns an item as a script and a judge get it.
func describeItem(c *work) *jsonvalue.Object {
	o := c.item.AsObject()
	o.Set("id", c.item.ID)
	return o
}

// describeResult returns a result as a script gets it.
func describeResult(r *Result) *jsonvalue.Object {
	names := func(events []testcase.Event) []any {
		list := make([]any, len(events))
		for n := range events {
			list[n] = events[n].Name
		}
		return list
	}
	o := jsonvalue.NewObject(
		jsonvalue.Member{Key: "run", Value: r.Run},
		jsonvalue.Member{Key: "status", Value: r.Status},
		jsonvalue.Member{Key: "output", Value: r.Output},
		jsonvalue.Member{Key: "path", Value: names(r.Path)},
		jsonvalue.Member{Key: "tool_calls", Value: names(r.Calls)},
		jsonvalue.Member{Key: "model_calls", Value: int64(r.ModelCalls)},
		jsonvalue.Member{Key: "cost", Value: r.Cost},
		jsonvalue.Member{Key: "seconds", Value: r.Seconds},
	)
	if r.State != nil {
		o.Set("state", r.State)
	}
	return o
}

// allKinds are the names of scorers, for messages.
var allKinds = slices.Sorted(slices.Values([]string{kindExpect, kindExact, kindContains, kindRegexp, kindSchema, kindSubset, kindNumber, kindDistance,
	kindPath, kindCalls, kindCost, kindLatency, kindModelCalls, kindToolCalls, kindScript, kindJudge}))
