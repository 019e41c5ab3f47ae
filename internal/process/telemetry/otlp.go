package telemetry

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The types below are the messages of OTLP in their JSON encoding: ids are hexadecimal, 64-bit
// integers are texts, and enumerations are numbers.
type (
	otlpTraces struct {
		ResourceSpans []otlpResourceSpans `json:"resourceSpans"`
	}
	otlpResourceSpans struct {
		Resource   otlpResource     `json:"resource"`
		ScopeSpans []otlpScopeSpans `json:"scopeSpans"`
		SchemaURL  string           `json:"schemaUrl,omitempty"`
	}
	otlpResource struct {
		Attributes []otlpAttribute `json:"attributes,omitempty"`
	}
	otlpScope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	otlpScopeSpans struct {
		Scope otlpScope  `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	otlpSpan struct {
		TraceID           string          `json:"traceId"`
		SpanID            string          `json:"spanId"`
		TraceState        string          `json:"traceState,omitempty"`
		ParentSpanID      string          `json:"parentSpanId,omitempty"`
		Flags             uint32          `json:"flags,omitempty"`
		Name              string          `json:"name"`
		Kind              int             `json:"kind"` // numbered as the API does
		Start             string          `json:"startTimeUnixNano"`
		End               string          `json:"endTimeUnixNano"`
		Attributes        []otlpAttribute `json:"attributes,omitempty"`
		DroppedAttributes int             `json:"droppedAttributesCount,omitempty"`
		Events            []otlpEvent     `json:"events,omitempty"`
		DroppedEvents     int             `json:"droppedEventsCount,omitempty"`
		Links             []otlpLink      `json:"links,omitempty"`
		Status            otlpStatus      `json:"status"`
	}
	otlpEvent struct {
		Time       string          `json:"timeUnixNano"`
		Name       string          `json:"name"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
	}
	otlpLink struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
	}
	otlpStatus struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code,omitempty"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	// otlpValue has exactly one field that is set, or none for an empty value.
	otlpValue struct {
		String *string          `json:"stringValue,omitempty"`
		Bool   *bool            `json:"boolValue,omitempty"`
		Int    *string          `json:"intValue,omitempty"`
		Double *otlpDouble      `json:"doubleValue,omitempty"`
		Array  *otlpArray       `json:"arrayValue,omitempty"`
		Map    *otlpKeyValues   `json:"kvlistValue,omitempty"`
		Bytes  *json.RawMessage `json:"bytesValue,omitempty"`
	}
	otlpArray struct {
		Values []otlpValue `json:"values"`
	}
	otlpKeyValues struct {
		Values []otlpAttribute `json:"values"`
	}
	// otlpDouble is a number that JSON may be unable to represent.
	otlpDouble float64
)

// MarshalJSON returns the number, or the text that stands for infinity or an undefined value.
func (d otlpDouble) MarshalJSON() ([]byte, error) {
	switch f := float64(d); {
	case math.IsNaN(f):
		return []byte(`"NaN"`), nil
	case math.IsInf(f, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(f, -1):
		return []byte(`"-Infinity"`), nil
	default:
		return json.Marshal(f)
	}
}

// A redactFunc removes secrets from a text.
type redactFunc func(text string) string

// encodeSpans returns spans as an export request.
func encodeSpans(spans []sdktrace.ReadOnlySpan, redact redactFunc) ([]byte, error) {
	type scopeKey struct {
		resource attribute.Distinct
		scope    instrumentation.Scope
	}
	var out otlpTraces
	resources := map[attribute.Distinct]int{}
	scopes := map[scopeKey]int{}
	for _, s := range spans {
		r := s.Resource()
		at, ok := resources[r.Equivalent()]
		if !ok {
			at = len(out.ResourceSpans)
			resources[r.Equivalent()] = at
			out.ResourceSpans = append(out.ResourceSpans, otlpResourceSpans{
				Resource:  encodeResource(r, redact),
				SchemaURL: r.SchemaURL(),
			})
		}
		list := &out.ResourceSpans[at].ScopeSpans
		key := scopeKey{r.Equivalent(), s.InstrumentationScope()}
		i, ok := scopes[key]
		if !ok {
			i = len(*list)
			scopes[key] = i
			*list = append(*list, otlpScopeSpans{Scope: otlpScope{Name: key.scope.Name, Version: key.scope.Version}})
		}
		(*list)[i].Spans = append((*list)[i].Spans, encodeSpan(s, redact))
	}
	return json.Marshal(out)
}

func encodeResource(r *resource.Resource, redact redactFunc) otlpResource {
	return otlpResource{encodeAttributes(r.Attributes(), redact)}
}

// These bits of a span's flags say whether its parent is in another process.
const (
	flagRemoteKnown = 1 << 8
	flagRemote      = 1 << 9
)

func encodeSpan(s sdktrace.ReadOnlySpan, redact redactFunc) otlpSpan {
	c := s.SpanContext()
	out := otlpSpan{
		TraceID:           c.TraceID().String(),
		SpanID:            c.SpanID().String(),
		TraceState:        c.TraceState().String(),
		Flags:             uint32(c.TraceFlags()) | flagRemoteKnown,
		Name:              redact(s.Name()),
		Kind:              int(s.SpanKind()),
		Start:             encodeTime(s.StartTime()),
		End:               encodeTime(s.EndTime()),
		Attributes:        encodeAttributes(s.Attributes(), redact),
		DroppedAttributes: s.DroppedAttributes(),
		DroppedEvents:     s.DroppedEvents(),
		Status:            encodeStatus(s.Status(), redact),
	}
	if p := s.Parent(); p.SpanID().IsValid() {
		out.ParentSpanID = p.SpanID().String()
		if p.IsRemote() {
			out.Flags |= flagRemote
		}
	}
	for _, e := range s.Events() {
		out.Events = append(out.Events, otlpEvent{encodeTime(e.Time), redact(e.Name), encodeAttributes(e.Attributes, redact)})
	}
	for _, l := range s.Links() {
		out.Links = append(out.Links, otlpLink{l.SpanContext.TraceID().String(), l.SpanContext.SpanID().String(), encodeAttributes(l.Attributes, redact)})
	}
	return out
}

// encodeStatus returns a status: OTLP numbers success before error, and the API after it.
func encodeStatus(s sdktrace.Status, redact redactFunc) otlpStatus {
	switch s.Code {
	case codes.Ok:
		return otlpStatus{Code: 1}
	case codes.Error:
		return otlpStatus{Message: redact(s.Description), Code: 2}
	}
	return otlpStatus{}
}

func encodeTime(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func encodeAttributes(list []attribute.KeyValue, redact redactFunc) []otlpAttribute {
	out := make([]otlpAttribute, 0, len(list))
	for _, a := range list {
		out = append(out, otlpAttribute{string(a.Key), encodeValue(a.Value, redact)})
	}
	return out
}

func encodeValue(v attribute.Value, redact redactFunc) otlpValue {
	switch v.Type() {
	case attribute.STRING:
		return encodeText(redact(v.AsString()))
	case attribute.BOOL:
		return otlpValue{Bool: new(v.AsBool())}
	case attribute.INT64:
		return otlpValue{Int: new(strconv.FormatInt(v.AsInt64(), 10))}
	case attribute.FLOAT64:
		return otlpValue{Double: new(otlpDouble(v.AsFloat64()))}
	case attribute.STRINGSLICE:
		return encodeList(v.AsStringSlice(), func(s string) otlpValue { return encodeText(redact(s)) })
	case attribute.BOOLSLICE:
		return encodeList(v.AsBoolSlice(), func(b bool) otlpValue { return otlpValue{Bool: &b} })
	case attribute.INT64SLICE:
		return encodeList(v.AsInt64Slice(), func(n int64) otlpValue { return encodeValue(attribute.Int64Value(n), redact) })
	case attribute.FLOAT64SLICE:
		return encodeList(v.AsFloat64Slice(), func(f float64) otlpValue { return encodeValue(attribute.Float64Value(f), redact) })
	case attribute.SLICE:
		return encodeList(v.AsSlice(), func(e attribute.Value) otlpValue { return encodeValue(e, redact) })
	case attribute.MAP:
		return otlpValue{Map: &otlpKeyValues{encodeAttributes(v.AsMap(), redact)}}
	case attribute.BYTESLICE:
		text := json.RawMessage(strconv.Quote(base64.StdEncoding.EncodeToString(v.AsByteSlice())))
		return otlpValue{Bytes: &text}
	}
	return otlpValue{}
}

func encodeText(s string) otlpValue { return otlpValue{String: &s} }

func encodeList[T any](list []T, encode func(T) otlpValue) otlpValue {
	out := &otlpArray{Values: make([]otlpValue, 0, len(list))}
	for _, e := range list {
		out.Values = append(out.Values, encode(e))
	}
	return otlpValue{Array: out}
}
