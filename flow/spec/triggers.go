package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/cron"
	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
)

// TriggerKinds are the fields of an entry of triggers that say what it waits for. An entry has one of them.
var TriggerKinds = []string{"schedule", "webhook", "event", "run"}

// Overlaps say what happens when a trigger fires while a run that it has started before still works: the new one is
// left out, waits, comes in its place, or works at the same time.
var Overlaps = []string{"skip", "queue", "cancel", "allow"}

// A Trigger is an entry of triggers: what starts a run of the agent without a person. One of Schedule, Webhook, Event
// and Run is set. In JSON it is what a store keeps of a trigger that is enabled.
type Trigger struct {
	// Name distinguishes the triggers of an agent; it is that of the kind unless the file says another.
	Name string `json:"name"`

	// Kind is one of TriggerKinds.
	Kind string `json:"kind"`

	Schedule *TriggerSchedule `json:"schedule,omitempty"`
	Webhook  *TriggerWebhook  `json:"webhook,omitempty"`
	Event    string           `json:"event,omitempty"`
	Run      *TriggerRun      `json:"run,omitempty"`

	// Overlap is one of Overlaps.
	Overlap string `json:"overlap"`

	// Prompt is what the run gets, a strict template about what has happened. State are templates of the first values
	// of the state of a graph.
	Prompt string       `json:"prompt,omitempty"`
	State  []StateValue `json:"state,omitempty"`

	Pos strictyaml.Pos `json:"-"` // of the entry
}

// A StateValue is a template of a value of the state.
type StateValue struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// A TriggerSchedule is when a schedule fires.
type TriggerSchedule struct {
	Text     string `json:"text"`
	Timezone string `json:"timezone,omitempty"` // in the IANA database; "": UTC

	// CatchUp is how late a tick may be fired that came while no server worked.
	CatchUp time.Duration `json:"catch_up"`
}

// DefaultCatchUp is how late a tick of a schedule may be fired that says nothing about it.
const DefaultCatchUp = time.Hour

// ParseTimes returns the times of a schedule.
func (s *TriggerSchedule) ParseTimes() (*cron.Schedule, error) {
	zone, err := cron.LoadZone(s.Timezone)
	if err != nil {
		return nil, err
	}
	return cron.Parse(s.Text, zone)
}

// A TriggerWebhook is a request of another program that fires a trigger, and how the program proves who it is.
type TriggerWebhook struct {
	Path string `json:"path"` // below the address of webhooks, without a slash before it

	// Secret and Token are names of environment variables; one of them is set. With a secret the body is signed as
	// Signature says, otherwise the request has the token.
	Secret    string           `json:"secret,omitempty"`
	Signature TriggerSignature `json:"signature,omitzero"`
	Token     string           `json:"token,omitempty"`

	// TokenHeader has the token; "": the header Authorization, after the word Bearer.
	TokenHeader string `json:"token_header,omitempty"`

	// ID is the header with an id that the sender gives to each delivery, the same when it sends it again; "": none.
	ID string `json:"id,omitempty"`
}

// A TriggerSignature says where the HMAC-SHA256 of a request is, and of what it is. A header that is written as
// NAME#PART is a list of PART=VALUE with commas, of which one is meant.
type TriggerSignature struct {
	Header    string `json:"header"`
	Encoding  string `json:"encoding"`            // hex or base64
	Prefix    string `json:"prefix,omitempty"`    // before the signature
	Timestamp string `json:"timestamp,omitempty"` // the header with the time of the request, in seconds since 1970; "": none
	Signed    string `json:"signed"`              // a template of what is signed, with timestamp, id and body
}

// A TriggerRun is the end of a run of another agent.
type TriggerRun struct {
	Agent  string `json:"agent"`
	Status string `json:"status"` // done or failed
}

// The default fields of signatures.
const (
	defaultSigned      = "{{body}}"
	defaultSignedTimed = "{{timestamp}}.{{body}}"
)

// signedParts are what a template of what is signed may have.
var signedParts = []string{"timestamp", "id", "body"}

// readTriggers reads the triggers of an agent or a graph, and returns findings about what has no effect, too.
func readTriggers(m *strictyaml.Fields, hasState bool) (list []Trigger, found []strictyaml.Finding) {
	names := map[string]bool{}
	readEntries(m, "triggers", func(fields *strictyaml.Fields, item *yaml.Node, _ bool) {
		r := &triggerReader{Fields: fields, hasState: hasState, item: item}
		t := r.readEntry()
		if names[t.Name] {
			r.AddFault(item, "name", "invalid-value", fmt.Sprintf("invalid value: two triggers have the name `%s`; give one of them another `name`", t.Name))
		}
		names[t.Name] = true
		list = append(list, t)
		found = append(append(found, r.found...), fields.UnknownKeys("", nil)...)
	})
	return list, found
}

// A triggerReader reads one entry of triggers.
type triggerReader struct {
	*strictyaml.Fields
	hasState bool       // the agent is a graph
	item     *yaml.Node // of the entry
	found    []strictyaml.Finding
}

// refuseValue reports an invalid value of a field of an entry.
func (r *triggerReader) refuseValue(at *yaml.Node, field, format string, args ...any) {
	r.AddFault(at, field, "invalid-value", "invalid value: "+fmt.Sprintf(format, args...))
}

// readEntry reads the entry.
func (r *triggerReader) readEntry() Trigger {
	t := Trigger{Pos: r.Source.Pos}
	for _, kind := range TriggerKinds {
		switch {
		case r.FindField(kind) == nil:
		case t.Kind == "":
			t.Kind = kind
		default:
			r.refuseValue(r.FindField(kind), kind, "the entry has `%s`, too; write an entry of its own for each", t.Kind)
		}
	}
	t.Name = r.ReadText("name", strictyaml.Optional)
	switch {
	case t.Name == "":
		t.Name = t.Kind
	case !isTriggerName(t.Name):
		r.refuseValue(r.FindField("name"), "name", "`%s`: a name has 1 to 60 letters, digits, - and _", wording.CutText(t.Name, 60, "…"))
	}
	t.Overlap = r.ReadText("overlap", strictyaml.Optional)
	if t.Overlap != "" && !slices.Contains(Overlaps, t.Overlap) {
		r.AddFault(r.FindField("overlap"), "overlap", "unknown-variant", unknownVariant(t.Overlap, Overlaps))
	}
	switch t.Kind {
	case "schedule":
		t.Schedule = r.readSchedule()
	case "webhook":
		t.Webhook = r.readWebhook()
	case "event":
		t.Event = r.readEvent()
	case "run":
		t.Run = r.readRun()
	default:
		r.Problems.Add(strictyaml.Finding{Code: "missing-field", Pos: r.Source.Pos,
			Message: strictyaml.PrefixPath(r.Path, "missing field: an entry has one of `"+strings.Join(TriggerKinds, "`, `")+"`")})
	}
	if t.Overlap == "" {
		t.Overlap = "allow"
		if t.Schedule != nil {
			t.Overlap = "skip"
		}
	}
	r.readInput(&t)
	r.warnElsewhere(t.Kind)
	return t
}

// isTriggerName reports whether a text can be the name of a trigger.
func isTriggerName(text string) bool {
	const most = 60
	return text != "" && len(text) <= most && !strings.ContainsFunc(text, func(c rune) bool {
		return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}

// fieldsOfKind are the fields that only entries of one kind have.
var fieldsOfKind = map[string][]string{
	"schedule": {"timezone", "catch_up", "prompt", "state"},
	"webhook":  {"secret", "signature", "token", "token_header", "id"},
}

// warnElsewhere reports fields that are those of another kind.
func (r *triggerReader) warnElsewhere(kind string) {
	for _, other := range TriggerKinds {
		for _, field := range fieldsOfKind[other] {
			at := r.FindField(field)
			if kind == "" || other == kind || at == nil {
				continue
			}
			if field == "prompt" || field == "state" {
				r.refuseValue(at, field, "what a trigger with `%s` gives the run is in `map`: write `map: {%s: ...}`", kind, field)
			} else {
				r.refuseValue(at, field, "it belongs to a trigger with `%s`, and this one has `%s`", other, kind)
			}
		}
	}
}

// readSchedule reads the fields of a schedule.
func (r *triggerReader) readSchedule() *TriggerSchedule {
	s := &TriggerSchedule{Text: r.ReadText("schedule", strictyaml.Required), Timezone: r.ReadText("timezone", strictyaml.Optional), CatchUp: DefaultCatchUp}
	zone, err := cron.LoadZone(s.Timezone)
	if err != nil {
		r.refuseValue(r.FindField("timezone"), "timezone", "%v", err)
	}
	if at := r.FindField("schedule"); at != nil {
		if times, err := cron.Parse(s.Text, zone); err != nil {
			r.refuseValue(at, "schedule", "`%s` is no schedule: %v", wording.CutText(s.Text, 60, "…"), err)
		} else if times.NamesBothDays() {
			r.found = append(r.found, strictyaml.Finding{Severity: strictyaml.SeverityWarning, Class: strictyaml.ClassAdvice, Code: "both-days", Pos: r.Source.PositionOf(at),
				Message: strictyaml.PrefixPath(r.Path+".schedule", "it comes on the days of the month and on those of the week, not only on those that are both: cron reads it so")})
		}
	}
	if text := r.ReadText("catch_up", strictyaml.Optional); text != "" {
		if s.CatchUp, err = ParseSpan(text); err != nil && text != "0" {
			r.refuseValue(r.FindField("catch_up"), "catch_up", "%v", err)
		}
		if most := 365 * 24 * time.Hour; s.CatchUp > most {
			r.refuseValue(r.FindField("catch_up"), "catch_up", "`%s` is longer than a year", text)
		}
	}
	return s
}

// readWebhook reads the fields of a webhook.
func (r *triggerReader) readWebhook() *TriggerWebhook {
	w := &TriggerWebhook{Path: r.ReadText("webhook", strictyaml.Required)}
	if at := r.FindField("webhook"); at != nil && !IsWebhookPath(w.Path) {
		r.refuseValue(at, "webhook", "`%s`: a path has words of letters, digits, -, _ and . with slashes between them, such as github/issues", wording.CutText(w.Path, 60, "…"))
	}
	w.Secret = r.readVariable("secret")
	w.Token = r.readVariable("token")
	w.TokenHeader = r.readHeader(r.Fields, "token_header")
	w.ID = r.readHeader(r.Fields, "id")
	hasSecret := r.FindField("secret") != nil
	hasToken := r.FindField("token") != nil
	switch signature := r.FindField("signature"); {
	case hasSecret && hasToken:
		r.refuseValue(r.FindField("token"), "token", "the entry has a `secret`, too; a sender signs with the secret, or sends the token")
	case !hasSecret && !hasToken:
		r.Problems.Add(strictyaml.Finding{Code: "missing-field", Pos: r.Source.Pos, Fix: "add `secret: ${NAME}` with the name of an environment variable",
			Message: strictyaml.PrefixPath(r.Path, "missing field: a webhook needs `secret` with `signature`, or `token`")})
	case hasSecret:
		w.Signature = r.readSignature()
	case signature != nil:
		r.refuseValue(signature, "signature", "a request with a token is not signed; write `secret` in place of `token`")
	}
	if at := r.FindField("token_header"); at != nil && !hasToken {
		r.refuseValue(at, "token_header", "the entry has no `token`")
	}
	return w
}

// IsWebhookPath reports whether a text can be the path of a webhook: no spelling of another one, and nothing that a
// server or a proxy rewrites.
func IsWebhookPath(text string) bool {
	const most = 200
	if len(text) > most {
		return false
	}
	for word := range strings.SplitSeq(text, "/") {
		if strings.Trim(word, ".") == "" || strings.ContainsFunc(word, func(c rune) bool {
			return c != '-' && c != '_' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
		}) {
			return false
		}
	}
	return true
}

// readVariable reads a reference to an environment variable, and returns its name. A text that is none is probably the
// secret itself, so no message shows it or points at it.
func (r *triggerReader) readVariable(field string) string {
	text := r.ReadText(field, strictyaml.Optional)
	if text == "" {
		if r.FindField(field) != nil {
			r.refuseValue(r.item, field, "it is empty; write `%s: ${NAME}` with the name of an environment variable", field)
		}
		return ""
	}
	ref, ok := environ.ParseReference(text)
	if !ok {
		r.refuseValue(r.item, field, "a secret does not belong into this file; write `%s: ${NAME}` with the name of an environment variable of the server", field)
		return ""
	}
	return ref.Name
}

// readHeader reads the name of a header, which may have a part.
func (r *triggerReader) readHeader(m *strictyaml.Fields, field string) string {
	text := m.ReadText(field, strictyaml.Optional)
	name, _, _ := strings.Cut(text, "#")
	if at := m.FindField(field); at != nil && (name == "" || strings.ContainsFunc(name, func(c rune) bool {
		return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})) {
		m.AddFault(at, field, "invalid-value", fmt.Sprintf("invalid value: `%s` is not the name of a header, such as X-Hub-Signature-256", wording.CutText(text, 60, "…")))
	}
	return text
}

// readSignature reads how requests are signed.
func (r *triggerReader) readSignature() (s TriggerSignature) {
	node := r.GetField("signature", strictyaml.Required)
	if node == nil || r.ReadMapping("signature") == nil {
		return s
	}
	m := strictyaml.NewFields(r.Problems, strictyaml.Mapping{Pos: r.Source.PositionOf(node), Node: node}, r.Path+".signature")
	m.Plain = true
	s.Header = r.readHeader(m, "header")
	if m.FindField("header") == nil {
		m.ReportMissing("header")
	}
	s.Timestamp = r.readHeader(m, "timestamp")
	s.Prefix = m.ReadText("prefix", strictyaml.Optional)
	s.Encoding = m.ReadText("encoding", strictyaml.Optional)
	encodings := []string{"hex", "base64"}
	switch {
	case s.Encoding == "":
		s.Encoding = encodings[0]
	case !slices.Contains(encodings, s.Encoding):
		m.AddFault(m.FindField("encoding"), "encoding", "unknown-variant", unknownVariant(s.Encoding, encodings))
	}
	signed := m.ReadText("signed", strictyaml.Optional)
	if signed == "" {
		signed = defaultSigned
		if s.Timestamp != "" {
			signed = defaultSignedTimed
		}
	}
	s.Signed = signed
	needs := map[string]bool{"body": false, "timestamp": s.Timestamp == ""}
	for _, path := range ParseTemplate(signed).Paths() {
		if !slices.Contains(signedParts, path) {
			m.AddFault(m.FindField("signed"), "signed", "invalid-value", "invalid value: {{"+path+"}} is none of {{"+strings.Join(signedParts, "}}, {{")+"}}")
		}
		needs[path] = true
	}
	for _, part := range []string{"body", "timestamp"} { // what is not signed proves nothing
		if at := m.FindField("signed"); at != nil && !needs[part] {
			m.AddFault(at, "signed", "invalid-value", "invalid value: {{"+part+"}} is missing: what is not signed proves nothing")
		}
	}
	r.found = append(r.found, m.UnknownKeys("", nil)...)
	return s
}

// readEvent reads the name of an event.
func (r *triggerReader) readEvent() string {
	name := r.ReadText("event", strictyaml.Required)
	if at := r.FindField("event"); at != nil && !IsWebhookPath(strings.ReplaceAll(name, ":", "-")) {
		r.refuseValue(at, "event", "`%s`: the name of an event has letters, digits and - _ . : /, such as order.paid", wording.CutText(name, 60, "…"))
	}
	return name
}

// readRun reads which end of which agent's runs is meant.
func (r *triggerReader) readRun() *TriggerRun {
	text := r.ReadText("run", strictyaml.Required)
	agent, status, _ := strings.Cut(text, " ")
	status = strings.TrimSpace(status)
	if at := r.FindField("run"); at != nil && (agent == "" || status != "done" && status != "failed") {
		r.refuseValue(at, "run", "`%s`: write the name of an agent and how its run has ended, such as `run: fetch done` or `run: fetch failed`", wording.CutText(text, 60, "…"))
	}
	return &TriggerRun{Agent: agent, Status: status}
}

// readInput reads what the run gets: the fields of a schedule, otherwise those of map.
func (r *triggerReader) readInput(t *Trigger) {
	m := r.Fields
	at := r.FindField("map")
	switch {
	case t.Kind == "schedule" && at != nil:
		r.refuseValue(at, "map", "a schedule has nothing from which it could map; write `prompt` and `state` without it")
		return
	case t.Kind == "schedule":
	case r.ReadMapping("map") == nil:
		if !r.hasState {
			r.Problems.Add(strictyaml.Finding{Code: "missing-field", Pos: r.Source.Pos, Fix: "add `map: {prompt: ...}`",
				Message: strictyaml.PrefixPath(r.Path, "missing field `map`: a model has nothing to answer without a prompt")})
		}
		return
	default:
		m = strictyaml.NewFields(r.Problems, strictyaml.Mapping{Pos: r.Source.PositionOf(at), Node: at}, r.Path+".map")
		m.Plain = true
	}
	t.Prompt = m.ReadText("prompt", strictyaml.Optional)
	if t.Prompt == "" && !r.hasState {
		m.ReportMissing("prompt")
	}
	if values := m.FindField("state"); values != nil && !r.hasState {
		m.AddFault(values, "state", "invalid-value", "invalid value: the agent is no graph and has no state; write what it is to know into `prompt`")
	}
	for _, pair := range m.ReadPairs("state", strictyaml.Optional) {
		t.State = append(t.State, StateValue{pair.Key, pair.Value})
	}
	if t.Kind == "schedule" {
		r.refuseTemplates(t)
		return
	}
	r.found = append(r.found, m.UnknownKeys("", nil)...)
}

// refuseTemplates reports placeholders of a schedule other than those that it has.
func (r *triggerReader) refuseTemplates(t *Trigger) {
	for _, path := range ParseTemplate(t.Prompt).Paths() {
		if !slices.Contains(ScheduleKeys, path) {
			r.refuseValue(r.FindField("prompt"), "prompt", "{{%s}} has no value: a schedule has {{%s}}", path, strings.Join(ScheduleKeys, "}}, {{"))
		}
	}
	for _, u := range t.State {
		for _, path := range ParseTemplate(u.Value).Paths() {
			if !slices.Contains(ScheduleKeys, path) {
				r.refuseValue(r.FindField("state"), "state."+u.Key, "{{%s}} has no value: a schedule has {{%s}}", path, strings.Join(ScheduleKeys, "}}, {{"))
			}
		}
	}
}

// ScheduleKeys are what templates of a schedule can read: the tick in its time zone as RFC 3339 and as a date, and the
// name of the trigger.
var ScheduleKeys = []string{"time", "date", "trigger"}

// String describes a trigger in a few words, such as: schedule "0 7 * * 1-5" in Europe/Berlin.
func (t *Trigger) String() string {
	switch {
	case t.Schedule != nil && t.Schedule.Timezone != "":
		return "schedule " + strconv.Quote(t.Schedule.Text) + " in " + t.Schedule.Timezone
	case t.Schedule != nil:
		return "schedule " + strconv.Quote(t.Schedule.Text) + " in UTC"
	case t.Webhook != nil:
		return "webhook " + t.Webhook.Path
	case t.Run != nil:
		return "run " + t.Run.Agent + " " + t.Run.Status
	}
	return "event " + t.Event
}
