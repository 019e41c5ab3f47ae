package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"raddle.dev/internal/base/redact"
	"raddle.dev/internal/testkit/testfile"
)

// answers are the responses of a receiver, in order; the last one is repeated. An answer is a status, and in how many
// seconds to come again.
type answers struct {
	list  [][2]string
	calls []time.Time
}

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	next := a.list[min(len(a.calls), len(a.list)-1)]
	a.calls = append(a.calls, time.Now())
	if next[0] == "" {
		return nil, errors.New("no route")
	}
	header := http.Header{"Retry-After": {next[1]}}
	code := map[string]int{"200": 200, "400": 400, "429": 429, "503": 503}[next[0]]
	body := io.NopCloser(strings.NewReader("x"))
	return &http.Response{StatusCode: code, Status: next[0], Header: header, Body: body}, nil
}

// A request is repeated after growing waits, or after those that the receiver asks for, as long as there is time.
func TestWaitsOfClient(t *testing.T) {
	for name, c := range map[string]struct {
		list  [][2]string
		waits []time.Duration
		err   string
	}{
		"taken":    {list: [][2]string{{"200", "9"}}},
		"refused":  {list: [][2]string{{"400", "9"}}, err: "the receiver https://h/t answered 400"},
		"no route": {list: [][2]string{{"", ""}}, err: "no route"},
		"busy": {
			list:  [][2]string{{"503", ""}, {"429", "3"}, {"200", ""}},
			waits: []time.Duration{firstWait, 3 * time.Second},
		},
		"not a number": {
			list:  [][2]string{{"503", "soon"}, {"503", "-1"}, {"200", ""}},
			waits: []time.Duration{firstWait, 2 * firstWait},
		},
		"always busy": {
			list:  [][2]string{{"503", ""}},
			waits: []time.Duration{firstWait, 2 * firstWait, 4 * firstWait, 8 * firstWait, longestWait},
			err:   "answered 503",
		},
		"far too late": {list: [][2]string{{"503", "3600"}}, err: "answered 503"},
	} {
		synctest.Test(t, func(t *testing.T) {
			to := &answers{list: c.list}
			client := newClient(&Receiver{URL: "https://h/t", Timeout: 10 * time.Second}, "1", redact.New().Text)
			client.http.Transport = to
			start := time.Now()
			err := client.sendRequest(t.Context(), []byte("{}"))
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", name, err, c.err)
			}
			if len(to.calls) != len(c.waits)+1 || time.Since(start) > 10*time.Second {
				t.Fatalf("%s: %d requests in %v", name, len(to.calls), time.Since(start))
			}
			for i, want := range c.waits {
				if got := to.calls[i+1].Sub(to.calls[i]); got != want {
					t.Errorf("%s: wait %d is %v, want %v", name, i, got, want)
				}
			}
		})
	}
}

// Metrics have the form of OTLP; an empty export sends nothing, and a kind that is not known is an error.
func TestEncodeMetrics(t *testing.T) {
	at := time.Unix(1, 5)
	set := attribute.NewSet(attribute.String("who", "hunter2hunter2"))
	metrics := func(data metricdata.Aggregation) *metricdata.ResourceMetrics {
		return &metricdata.ResourceMetrics{
			Resource: resource.Empty(),
			ScopeMetrics: []metricdata.ScopeMetrics{
				{Metrics: []metricdata.Metrics{{Name: "m", Unit: "s", Data: data}}},
			},
		}
	}
	const place = `"startTimeUnixNano":"1000000005","timeUnixNano":"1000000005"`
	const who = `"attributes":[{"key":"who","value":{"stringValue":"[redacted]"}}]`
	for _, c := range []struct {
		data metricdata.Aggregation
		want string
	}{
		{
			metricdata.Sum[int64]{
				Temporality: metricdata.DeltaTemporality,
				IsMonotonic: true,
				DataPoints:  []metricdata.DataPoint[int64]{{Attributes: set, StartTime: at, Time: at, Value: 1<<53 + 1}},
			},
			`"sum":{"dataPoints":[{` + who + `,` + place + `,"asInt":"9007199254740993"}],` +
				`"aggregationTemporality":1,"isMonotonic":true}`,
		},
		{
			metricdata.Sum[float64]{DataPoints: []metricdata.DataPoint[float64]{{StartTime: at, Time: at, Value: 0.5}}},
			`"sum":{"dataPoints":[{` + place + `,"asDouble":0.5}],"aggregationTemporality":2}`,
		},
		{
			metricdata.Histogram[int64]{DataPoints: []metricdata.HistogramDataPoint[int64]{{
				StartTime:    at,
				Time:         at,
				Count:        3,
				Sum:          7,
				Bounds:       []float64{4},
				BucketCounts: []uint64{1, 2},
				Min:          metricdata.NewExtrema[int64](1),
			}}},
			`"histogram":{"dataPoints":[{` + place + `,"count":"3","sum":7,"bucketCounts":["1","2"],` +
				`"explicitBounds":[4],"min":1}],"aggregationTemporality":2}`,
		},
		{
			metricdata.Histogram[float64]{DataPoints: []metricdata.HistogramDataPoint[float64]{{StartTime: at, Time: at}}},
			`"histogram":{"dataPoints":[{` + place + `,"count":"0","sum":0,"bucketCounts":[],"explicitBounds":[]}],`,
		},
	} {
		got, err := encodeMetrics(metrics(c.data), redact.New("hunter2hunter2").Text)
		if err != nil || !json.Valid(got) || !strings.Contains(string(got), c.want) {
			t.Errorf("%s, %v; want %s", got, err, c.want)
		}
	}
	to := &answers{list: [][2]string{{"200", ""}}}
	c := metricClient{newClient(&Receiver{URL: "https://h/t", Timeout: time.Second}, "1", redact.New().Text)}
	c.http.Transport = to
	if err := c.Export(t.Context(), &metricdata.ResourceMetrics{}); err != nil || len(to.calls) != 0 {
		t.Errorf("nothing: %v, %d requests", err, len(to.calls))
	}
	err := c.Export(t.Context(), metrics(metricdata.Gauge[int64]{}))
	if err == nil || !strings.HasPrefix(err.Error(), "the metric m has data of the type metricdata.Gauge[int64], ") {
		t.Errorf("a kind that is not known: %v", err)
	}
	if err := c.Export(t.Context(), metrics(metricdata.Sum[int64]{})); err != nil || len(to.calls) != 1 {
		t.Errorf("%v, %d requests", err, len(to.calls))
	}
}

// OTLP numbers the codes of a status in its own way, and only a failure has a text.
func TestEncodeStatus(t *testing.T) {
	clean := redact.New("hunter2hunter2").Text
	for code, want := range map[codes.Code]otlpStatus{
		codes.Unset: {}, codes.Ok: {Code: 1}, codes.Error: {Code: 2, Message: "at [redacted]"},
	} {
		if got := encodeStatus(sdktrace.Status{Code: code, Description: "at hunter2hunter2"}, clean); got != want {
			t.Errorf("%v: %+v, want %+v", code, got, want)
		}
	}
}

// A trace whose file cannot be opened or written is an error; of the latter, only Close returns one.
func TestFilesOfTraces(t *testing.T) {
	dir := t.TempDir()
	if tel, err := Open(Setup{File: dir}); err == nil || tel != nil {
		t.Errorf("a directory is a trace: %v", err)
	}
	if tel, err := Open(Setup{}); err != nil || tel != nil || tel.Close() != nil {
		t.Errorf("nothing is exported, by %v (%v)", tel, err)
	}
	tel, err := Open(Setup{File: filepath.Join(dir, "trace")})
	if err != nil {
		t.Fatal(err)
	}
	if err := tel.file.file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tel.file.ExportSpans(context.Background(), nil); err != nil {
		t.Errorf("an export returns what Close returns: %v", err)
	}
	if err := tel.Close(); err == nil || !strings.HasPrefix(err.Error(), "the trace is not complete: write ") {
		t.Errorf("a file that was closed: %v", err)
	}
}

// A certificate that cannot be read is named, and what needs it is not sent: a receiver is never asked without it.
func TestCertificates(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	testfile.WriteFile(t, empty, "no certificate\n")
	const half = "the certificate of the client needs a key, and the key a certificate"
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	certificate := varOTLP + "CERTIFICATE"
	client := varOTLP + "CLIENT_CERTIFICATE"
	key := varOTLP + "CLIENT_KEY"
	for _, c := range []struct {
		env  map[string]string
		warn string
	}{
		{map[string]string{certificate: empty}, certificate + ": " + empty + " contains no certificate"},
		{map[string]string{client: empty}, half},
		{map[string]string{key: empty}, half},
		{map[string]string{key: empty, client: empty}, "the certificate of the client: "},
	} {
		c.env[endpoint] = "https://h"
		got := ReadSettings(lookupIn(c.env))
		if got.Traces != nil || got.Metrics != nil || len(got.Warnings) != 2 {
			t.Errorf("%v: %+v", c.env, got)
			continue
		}
		for i, signal := range []string{"traces", "metrics"} {
			text := got.Warnings[i]
			if !strings.HasPrefix(text, c.warn) || !strings.HasSuffix(text, ", so "+signal+" are not sent") {
				t.Errorf("%v: %q, want %q", c.env, text, c.warn)
			}
		}
	}
}
