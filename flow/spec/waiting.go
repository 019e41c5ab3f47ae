package spec

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
)

// ParseSpan returns how long a text says to wait: a number with a unit, or several, as in Go, and whole days before
// them: 90s, 2h30m, 3d, 1d12h. It is not negative.
func ParseSpan(text string) (time.Duration, error) {
	wrong := fmt.Errorf("`%s` is not a duration: write for example 90s, 2h30m or 3d", wording.CutText(text, 60, "…"))
	const mostDays = uint64(math.MaxInt64 / (24 * time.Hour))
	rest := text
	span := time.Duration(0)
	if days, after, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 64)
		if err != nil || n > mostDays {
			return 0, wrong
		}
		span = time.Duration(n) * 24 * time.Hour
		rest = after
	}
	if rest == "" && rest != text {
		return span, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || span > math.MaxInt64-d || rest == "0" || strings.ContainsAny(rest, "+-") {
		return 0, wrong
	}
	return span + d, nil
}

// ParseMoment returns the time that a text says: one of RFC 3339, such as 2026-12-24T18:00:00+01:00, or a date, which
// begins in a zone.
func ParseMoment(text string, zone *time.Location) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	t, err := time.ParseInLocation(time.DateOnly, text, zone)
	if err != nil {
		return t, fmt.Errorf("`%s` is not a time: write for example 2026-12-24T18:00:00+01:00, or 2026-12-24 for its beginning", wording.CutText(text, 60, "…"))
	}
	return t, nil
}

// ReadSpan reads a template of a text for [ParseSpan], and ReadMoment one for [ParseMoment]. A text without
// placeholders is checked. The zero Template is returned if there is no field.
func (f *NodeFields) ReadSpan(field string) Template {
	return f.readTime(f.FindField(field), field, checkSpan)
}

func checkSpan(text string) error {
	_, err := ParseSpan(text)
	return err
}

// ReadMoment is described at [NodeFields.ReadSpan].
func (f *NodeFields) ReadMoment(field string) Template {
	return f.readTime(f.FindField(field), field, func(text string) error {
		_, err := ParseMoment(text, time.UTC)
		return err
	})
}

func (f *NodeFields) readTime(n *yaml.Node, field string, check func(text string) error) (t Template) {
	if n == nil {
		return t
	}
	text, ok := strictyaml.ScalarText(n, true)
	if !ok {
		f.WrongType(n, field, "a string")
		return t
	}
	t = f.AddStrict(field, text)
	if len(t.Paths()) > 0 {
		return t
	}
	if err := check(text); err != nil {
		f.AddFault(n, field, "invalid-value", "invalid value: "+err.Error())
	}
	return t
}

// A Deadline is how long a question of a node waits for its answer, and what happens then.
type Deadline struct {
	After Template // for ParseSpan; the zero Template: the question waits without limit

	// To is the node that runs next, Answer the text that is taken for the answer if HasAnswer. Without either, the
	// node fails.
	To        string
	Answer    Template // strict
	HasAnswer bool
}

// failWord is the on_deadline of a node that fails.
const failWord = "fail"

// ReadDeadline reads the deadline of a node and what happens then, and adds the edge that may be followed.
func (f *NodeFields) ReadDeadline() (d Deadline) {
	const field = "on_deadline"
	d.After = f.readTime(f.GetField("deadline", strictyaml.Optional), "deadline", checkSpan)
	at := f.FindField(field)
	if at != nil && f.Source.FieldNode("deadline") == nil {
		f.AddFault(at, field, "invalid-value", "invalid value: there is no `deadline` after which it could happen; add for example `deadline: 48h`")
	}
	if !f.HasValue(field) {
		return d
	}
	if strictyaml.ResolveAlias(at).Kind != yaml.MappingNode {
		if d.To = f.ReadText(field, strictyaml.Optional); d.To == failWord {
			d.To = ""
		} else if d.To != "" {
			f.AddEdge(Edge{To: d.To, Field: field, Role: EdgeFailure, Picture: "deadline"})
		}
		return d
	}
	pairs := f.ReadPairs(field, strictyaml.Optional)
	if len(pairs) != 1 || pairs[0].Key != "answer" {
		text := "invalid value: expected `answer: TEXT`, the id of a node, or fail"
		if len(pairs) > 0 && pairs[0].Key != "answer" {
			if hint := wording.SuggestNearest(pairs[0].Key, []string{"answer"}, "`"); hint != "" {
				text += " (" + hint + ")"
			}
		}
		f.AddFault(at, field, "invalid-value", text)
		return d
	}
	d.Answer = f.AddStrict(field, pairs[0].Value)
	d.HasAnswer = true
	return d
}
