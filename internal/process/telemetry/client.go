package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"raddle.dev/internal/base/redact"
)

// A client sends export requests to one receiver. It implements the exporters of the SDK for
// spans and, as a metricClient, for metrics.
type client struct {
	to     *Receiver
	agent  string // User-Agent
	http   *http.Client
	redact redactFunc

	ended context.Context // ends when the client is closed for good
	end   context.CancelFunc
}

// newClient returns a client of a receiver.
func newClient(to *Receiver, version string, redact redactFunc) *client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = to.tls
	transport.MaxIdleConnsPerHost = 1
	c := &client{
		to:     to,
		agent:  "raddle/" + version + " OTLP-JSON",
		redact: redact,
		http: &http.Client{
			Transport: transport,
			// another host must not get the headers
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	c.ended, c.end = context.WithCancel(context.Background())
	return c
}

// ExportSpans implements [sdktrace.SpanExporter].
func (c *client) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	body, err := encodeSpans(spans, c.redact)
	if err != nil {
		return err
	}
	return c.sendRequest(ctx, body)
}

// Shutdown implements [sdktrace.SpanExporter].
func (c *client) Shutdown(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// A metricClient is a client for metrics.
type metricClient struct{ *client }

// Temporality implements [metric.Exporter].
func (metricClient) Temporality(k metric.InstrumentKind) metricdata.Temporality {
	return metric.DefaultTemporalitySelector(k)
}

// Aggregation implements [metric.Exporter].
func (metricClient) Aggregation(k metric.InstrumentKind) metric.Aggregation {
	return metric.DefaultAggregationSelector(k)
}

// Export implements [metric.Exporter].
func (c metricClient) Export(ctx context.Context, rm *metricdata.ResourceMetrics) error {
	if len(rm.ScopeMetrics) == 0 {
		return nil
	}
	body, err := encodeMetrics(rm, c.redact)
	if err != nil {
		return err
	}
	return c.sendRequest(ctx, body)
}

// ForceFlush implements [metric.Exporter].
func (metricClient) ForceFlush(context.Context) error { return nil }

// The waits between requests that the receiver asks to repeat.
const (
	firstWait   = 250 * time.Millisecond
	longestWait = 4 * time.Second
)

// sendRequest posts a request, and posts it again while the receiver asks for that and there
// is time.
func (c *client) sendRequest(ctx context.Context, body []byte) error {
	if err := c.ended.Err(); err != nil {
		return err // an AfterFunc would cancel a little later
	}
	ctx, cancel := context.WithTimeout(ctx, c.to.Timeout)
	defer cancel()
	defer context.AfterFunc(c.ended, cancel)()
	encoding := ""
	if c.to.Compress {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(body) // a buffer takes everything
		_ = w.Close()
		body = b.Bytes()
		encoding = "gzip"
	}
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		again, after, err := c.postOnce(ctx, body, encoding)
		if !again {
			return err
		}
		select {
		case <-time.After(max(wait, after)):
		case <-ctx.Done():
			return err
		}
	}
}

// postOnce posts a request. again reports whether the receiver asks for it again, not before
// some time has passed.
func (c *client) postOnce(ctx context.Context, body []byte, encoding string) (again bool, after time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.to.URL, bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}
	req.Header.Set("User-Agent", c.agent)
	for name, value := range c.to.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return false, 0, err
	}
	defer func() { _ = res.Body.Close() }()
	const most = 64 << 10
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, most)) // the connection can be used again
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		again = true
		after = time.Duration(seconds) * time.Second
	}
	if res.StatusCode/100 != 2 {
		err = fmt.Errorf("the receiver %s answered %s", redact.RedactURL(c.to.URL), res.Status)
	}
	return again, after, err
}
