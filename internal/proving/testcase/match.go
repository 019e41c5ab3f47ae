package testcase

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
)

// Failure is one thing that was not as expected.
type Failure struct {
	Pos     strictyaml.Pos
	What    string // output, path, state.total, ...
	Message string // what was expected, and what was; in one line
	Want    string // texts to compare line by line; empty: Message says it all
	Got     string

	At     strictyaml.Pos // where the expected value is
	Actual any            // what Replace can write there; nil: the expectation cannot be rewritten
}

// Check compares a value with what is expected. what is the value in failures. ok is false if there is no such value.
func (m *Matcher) Check(what string, v any, ok bool) (failed []Failure) {
	add := func(format string, args ...any) {
		failed = append(failed, Failure{Pos: m.Pos, What: what, Message: fmt.Sprintf(format, args...)})
	}
	switch {
	case m.Absent != nil && *m.Absent == ok:
		if ok {
			add("expected no value, got %s", show(v))
		} else {
			add("expected a value, there is none")
		}
		return failed
	case !ok && m.Absent == nil:
		add("expected %s, there is no value", m.describe())
		return failed
	case !ok:
		return nil
	}
	text := Text(v)
	if m.Equal != nil && !equalValues(*m.Equal, v) {
		f := Failure{Pos: m.Pos, What: what, Message: fmt.Sprintf("expected %s, got %s", show(*m.Equal), show(v)), At: m.Pos, Actual: v}
		if want, isText := (*m.Equal).(string); isText {
			f.Want = want
			f.Got = text
			// a number, and the text expects the same digits
			if strings.TrimRight(want, "\n") == strings.TrimRight(text, "\n") {
				f.Want = ""
				f.Got = ""
				f.Message = fmt.Sprintf("expected the text %s, got the %s %s", show(want), jsonvalue.TypeName(v), show(v))
			}
		}
		failed = append(failed, f)
	}
	for _, part := range m.Contains {
		if !strings.Contains(text, part) {
			add("expected a text that contains %s, got %s", show(part), show(text))
		}
	}
	for _, part := range m.Never {
		if strings.Contains(text, part) {
			add("expected a text without %s, got %s", show(part), showAround(text, part))
		}
	}
	if m.Pattern != nil && !m.Pattern.MatchString(text) {
		add("expected a text that matches %s, got %s", m.Pattern, show(text))
	}
	if m.Schema != nil {
		if err := m.checkSchema(v); err != nil {
			add("expected a value of the schema, got %s: %v", show(v), err)
		}
	}
	if m.Above != nil || m.Below != nil {
		f, isNumber := readFloat(v)
		switch {
		case !isNumber:
			add("expected a number, got %s", show(v))
		case m.Above != nil && f <= *m.Above:
			add("expected a number above %v, got %s", *m.Above, show(v))
		case m.Below != nil && f >= *m.Below:
			add("expected a number below %v, got %s", *m.Below, show(v))
		}
	}
	return failed
}

// checkSchema validates a value, or the JSON that a text holds.
func (m *Matcher) checkSchema(v any) error {
	if text, ok := v.(string); ok {
		parsed, err := jsonvalue.Parse([]byte(text))
		if err == nil {
			v = parsed
		}
	}
	var plain any
	if err := json.Unmarshal([]byte(jsonvalue.Compact(v)), &plain); err != nil {
		return err
	}
	return m.Schema.Validate(plain)
}

// describe says in a few words what is expected.
func (m *Matcher) describe() string {
	switch {
	case m.Equal != nil:
		return show(*m.Equal)
	case len(m.Contains) > 0:
		return "a text that contains " + show(m.Contains[0])
	case m.Pattern != nil:
		return "a text that matches " + m.Pattern.String()
	}
	return "a value"
}

// equalValues reports whether a value is the expected one. Line breaks at the end of texts do not count. What is
// expected of a text may also be the data that the text holds as JSON.
func equalValues(want, got any) bool {
	wantText, isText := want.(string)
	gotText, ok := got.(string)
	switch {
	case isText && ok:
		return strings.TrimRight(wantText, "\n") == strings.TrimRight(gotText, "\n")
	case isText:
		return false
	case ok:
		if strings.TrimRight(gotText, "\n") == Text(want) {
			return true
		}
		parsed, err := jsonvalue.Parse([]byte(gotText))
		return err == nil && equalJSON(want, parsed)
	}
	return equalJSON(want, got)
}

// equalJSON reports whether values are the same JSON. A number is the same however it is written, also inside of others.
func equalJSON(want, got any) bool {
	switch x := want.(type) {
	case []any:
		y, ok := got.([]any)
		return ok && slices.EqualFunc(x, y, equalJSON)
	case *jsonvalue.Object:
		y, ok := got.(*jsonvalue.Object)
		if !ok || x.Len() != y.Len() {
			return false
		}
		for key, v := range x.All() {
			if other, ok := y.Get(key); !ok || !equalJSON(v, other) {
				return false
			}
		}
		return true
	}
	a, isNumber := jsonvalue.AsFloat(want)
	if b, ok := jsonvalue.AsFloat(got); isNumber && ok {
		return a == b
	}
	return jsonvalue.Equal(want, got)
}

func readFloat(v any) (float64, bool) {
	if text, ok := v.(string); ok {
		f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		return f, err == nil && !math.IsNaN(f)
	}
	return jsonvalue.AsFloat(v)
}

// maxShown is the number of characters of a value that a message shows.
const maxShown = 120

// show returns a value for a message, in one line.
func show(v any) string {
	if text, ok := v.(string); ok {
		return strconv.Quote(wording.CutText(strings.TrimRight(text, "\n"), maxShown, "…"))
	}
	if v == nil {
		return "null"
	}
	return wording.CutText(Text(v), maxShown, "…")
}

// showAround returns the part of a text that is around what was found in it.
func showAround(text, part string) string {
	if at := strings.Index(text, part); at > maxShown/2 {
		start := at - maxShown/2
		for start > 0 && text[start]&0xc0 == 0x80 {
			start--
		}
		text = "…" + text[start:]
	}
	return show(text)
}

// Event is one thing that happened in a run, in the order of a [Sequence].
type Event struct {
	Name string // as a case names it
	Full string // with what is around it, such as the nodes above; empty: as Name
	Text string // of a question
	Args any    // of a call
}

// isNamed reports whether an event has a name.
func (e *Event) isNamed(name string) bool { return name == e.Name || name == e.Full }

// fits returns why an event is not an item, or "".
func (i *Item) fits(e *Event) string {
	if !e.isNamed(i.Name) {
		return fmt.Sprintf("expected %s, got %s", i.Name, e.Name)
	}
	if i.Text != nil {
		for _, f := range i.Text.Check(i.Name, e.Text, true) {
			return f.Message
		}
	}
	for n := range i.Args {
		v, ok := Lookup(e.Args, i.Args[n].Path)
		for _, f := range i.Args[n].Check(i.Args[n].Path, v, ok) {
			return fmt.Sprintf("%s: argument %s: %s", i.Name, f.What, f.Message)
		}
	}
	return ""
}

// Check compares what happened with what is expected. Exact compares only the events that exact reports; nil: all of
// them.
func (s *Sequence) Check(what string, all []Event, exact func(*Event) bool) (failed []Failure) {
	if s.Exact != nil {
		events := all
		if exact != nil {
			events = slices.DeleteFunc(slices.Clone(all), func(e Event) bool { return !exact(&e) })
		}
		if f, ok := s.checkExact(what, events); !ok {
			failed = append(failed, f)
		}
	}
	next := 0
	for n := range s.Contains {
		item := &s.Contains[n]
		at := slices.IndexFunc(all[next:], func(e Event) bool { return item.fits(&e) == "" })
		if at < 0 {
			failed = append(failed, Failure{Pos: item.Pos, What: what, Message: missingItem(item, all, next)})
			break
		}
		next += at + 1
	}
	for n := range s.Never {
		item := &s.Never[n]
		if at := slices.IndexFunc(all, func(e Event) bool { return item.fits(&e) == "" }); at >= 0 {
			failed = append(failed, Failure{Pos: item.Pos, What: what, Message: fmt.Sprintf("expected no %s, got %s", item.Name, listNames(all))})
		}
	}
	return failed
}

// missingItem says why no event from next on is the item.
func missingItem(item *Item, all []Event, next int) string {
	why := ""
	for i := range all[next:] {
		if e := &all[next+i]; e.isNamed(item.Name) {
			why = item.fits(e)
		}
	}
	after := ""
	if next > 0 {
		after = " after " + all[next-1].Name
	}
	if why != "" {
		return why + after
	}
	return fmt.Sprintf("expected %s%s, got %s", item.Name, after, listNames(all))
}

func (s *Sequence) checkExact(what string, all []Event) (f Failure, ok bool) {
	f = Failure{Pos: s.Pos, What: what, At: s.Pos, Actual: texts(eventNames(all))}
	for n := range max(len(s.Exact), len(all)) {
		switch {
		case n >= len(s.Exact):
			f.Message = fmt.Sprintf("expected nothing more, got %s", all[n].Name)
		case n >= len(all):
			f.Message, f.Pos = fmt.Sprintf("expected %s, got nothing more", s.Exact[n].Name), s.Exact[n].Pos
		default:
			if f.Message = s.Exact[n].fits(&all[n]); f.Message == "" {
				continue
			}
			f.Pos = s.Exact[n].Pos
		}
		names := make([]string, len(s.Exact))
		for i := range s.Exact {
			names[i] = s.Exact[i].Name
		}
		f.Message = fmt.Sprintf("%s (%s %d of %d)", f.Message, "entry", n+1, len(s.Exact))
		f.Want, f.Got = strings.Join(names, "\n"), strings.Join(eventNames(all), "\n")
		if f.Want == f.Got { // only arguments or texts differ
			f.Want = ""
			f.Got = ""
			f.Actual = nil
		}
		return f, false
	}
	return f, true
}

func eventNames(all []Event) []string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names
}

func listNames(all []Event) string {
	if len(all) == 0 {
		return "nothing"
	}
	return wording.CutText(strings.Join(eventNames(all), ", "), 2*maxShown, "…")
}

// Check compares the texts that a node sent with what is expected.
func (t *TextsOf) Check(what string, sent []string) (failed []Failure) {
	what += "." + t.Node
	if len(sent) == 0 {
		return []Failure{{Pos: t.Pos, What: what, Message: "expected a request, the node sent none"}}
	}
	if t.InOrder {
		if len(t.Matchers) != len(sent) {
			return []Failure{{Pos: t.Pos, What: what, Message: fmt.Sprintf("expected %s, got %d", wording.FormatCount(len(t.Matchers), "request"), len(sent))}}
		}
		for i := range t.Matchers {
			failed = append(failed, t.Matchers[i].Check(fmt.Sprintf("%s[%d]", what, i), sent[i], true)...)
		}
		return failed
	}
	m := t.Matchers[0]
	for _, text := range sent {
		never := Matcher{Pos: m.Pos, Never: m.Never}
		failed = append(failed, never.Check(what, text, true)...)
	}
	m.Never = nil
	var first []Failure
	for i, text := range sent {
		found := m.Check(what, text, true)
		if len(found) == 0 {
			return failed
		}
		if i == 0 {
			first = found
		}
	}
	if len(sent) > 1 {
		for i := range first {
			first[i].Message += fmt.Sprintf(" (none of %d requests fits; this is the first)", len(sent))
			first[i].Actual = nil
		}
	}
	return append(failed, first...)
}

// splitPath returns the keys and indexes of a path such as key.member[0].
func splitPath(path string) (parts []any, err error) {
	for part := range strings.SplitSeq(path, ".") {
		name, rest, indexed := strings.Cut(part, "[")
		if name == "" && (len(parts) > 0 || !indexed) {
			return nil, fmt.Errorf("the path %q has an empty name", path)
		}
		if name != "" {
			parts = append(parts, name)
		}
		for indexed {
			var number string
			var closed bool
			number, rest, closed = strings.Cut(rest, "]")
			n, err := strconv.Atoi(number)
			if !closed || err != nil || n < 0 {
				return nil, fmt.Errorf("the path %q has an index that is not a number in brackets", path)
			}
			parts = append(parts, n)
			if rest == "" {
				break
			}
			if rest[0] != '[' {
				return nil, fmt.Errorf("the path %q has an index that is not a number in brackets", path)
			}
			rest = rest[1:]
		}
	}
	return parts, nil
}

// Lookup returns the value at a path in a value.
func Lookup(v any, path string) (found any, ok bool) {
	if o, isObject := v.(*jsonvalue.Object); isObject {
		if found, ok = o.Get(path); ok { // a key that has dots
			return found, true
		}
	}
	parts, err := splitPath(path)
	if err != nil {
		return nil, false
	}
	for _, part := range parts {
		switch p := part.(type) {
		case string:
			o, isObject := v.(*jsonvalue.Object)
			if !isObject {
				return nil, false
			}
			if v, ok = o.Get(p); !ok {
				return nil, false
			}
		case int:
			list, isList := v.([]any)
			if !isList || p >= len(list) {
				return nil, false
			}
			v = list[p]
		}
	}
	return v, true
}
