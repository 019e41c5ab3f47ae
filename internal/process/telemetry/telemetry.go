package telemetry

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"raddle.dev/internal/base/redact"
	"raddle.dev/llm"
)

// Setup is what the telemetry of a process needs from the process.
type Setup struct {
	Settings Settings
	File     string // spans are also appended to this file; empty: they are not
	Version  string // of raddle
	Secrets  *redact.Set
	Log      *slog.Logger // nil: no log

	// Cost returns the cost of a reply in US dollars, by the provider's name for the model; nil: it is not known.
	Cost func(model string, u llm.Usage) (dollars float64, known bool)
}

// Telemetry exports what the runs of a process do. It is safe for concurrent use.
type Telemetry struct {
	setup   Setup
	tracer  trace.Tracer
	traces  *sdktrace.TracerProvider // nil: there are none
	metrics *sdkmetric.MeterProvider // nil: there are none
	clients []*client
	file    *fileExporter // nil: there is none
	meters  meters
	close   func() error // closes everything, once
}

// scopeName is the name of the instrumentation.
const scopeName = "raddle.dev"

// Open starts to export what a configuration and a file ask for. It returns nil if they ask for
// nothing. It opens no connection, and fails only if the file cannot be opened.
func Open(o Setup) (*Telemetry, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	c := &o.Settings
	for _, text := range c.Warnings {
		o.Log.Warn("telemetry: " + text)
	}
	if c.Traces == nil && c.Metrics == nil && o.File == "" {
		return nil, nil
	}
	t := &Telemetry{setup: o}
	t.close = sync.OnceValue(t.closeAll)
	otel.SetLogger(logr.FromSlogHandler(o.Log.Handler()))
	otel.SetErrorHandler(&onceHandler{log: o.Log})
	from := t.describeProcess()
	var processors []sdktrace.TracerProviderOption
	if o.File != "" {
		var err error
		if t.file, err = openFile(o.File, t.redact); err != nil {
			return nil, err
		}
		processors = append(processors, sdktrace.WithSyncer(t.file))
	}
	if c.Traces != nil {
		processors = append(processors, sdktrace.WithBatcher(t.newClient(c.Traces), sdktrace.WithExportTimeout(c.Traces.Timeout)))
	} else if t.file != nil {
		processors = append(processors, sdktrace.WithSampler(sdktrace.AlwaysSample())) // a person asks for this trace
	}
	t.tracer = tracenoop.NewTracerProvider().Tracer(scopeName)
	if processors != nil {
		t.traces = sdktrace.NewTracerProvider(append(processors, sdktrace.WithResource(from), sdktrace.WithIDGenerator(idGenerator{}))...)
		t.tracer = t.traces.Tracer(scopeName, trace.WithInstrumentationVersion(o.Version))
	}
	var provider metric.MeterProvider = metricnoop.NewMeterProvider()
	if c.Metrics != nil {
		reader := sdkmetric.NewPeriodicReader(metricClient{t.newClient(c.Metrics)}, sdkmetric.WithTimeout(c.Metrics.Timeout))
		t.metrics = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(from))
		provider = t.metrics
	}
	t.meters = newMeters(provider.Meter(scopeName, metric.WithInstrumentationVersion(o.Version)))
	return t, nil
}

func (t *Telemetry) newClient(to *Receiver) *client {
	for _, value := range to.Headers {
		if t.setup.Secrets != nil {
			t.setup.Secrets.Add(value)
		}
	}
	c := newClient(to, t.setup.Version, t.redact)
	t.clients = append(t.clients, c)
	return c
}

// describeProcess returns what OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say about the
// process, and what they leave out.
func (t *Telemetry) describeProcess() *resource.Resource {
	r, err := resource.New(context.Background(),
		resource.WithAttributes(attribute.String("service.name", "raddle"), attribute.String("service.version", t.setup.Version), attribute.String("service.instance.id", rand.Text())),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		t.setup.Log.Warn("telemetry: OTEL_RESOURCE_ATTRIBUTES cannot be read", "error", err)
	}
	return r
}

// redact removes the secrets that the process knows now.
func (t *Telemetry) redact(text string) string {
	if t.setup.Secrets == nil {
		return text
	}
	return t.setup.Secrets.Text(text)
}

// text returns an attribute without secrets. Texts that may be long need it: the SDK may cut
// them before they are exported, and a part of a secret is not found.
func (t *Telemetry) text(key attribute.Key, value string) attribute.KeyValue {
	return key.String(t.redact(value))
}

// closeTimeout is how long Close waits for receivers.
const closeTimeout = 2 * time.Second

// Close sends what has not been sent yet, and waits for that no longer than two seconds. The error is
// that of the file; a receiver that cannot be reached is only a warning in the log. Close of nil, and
// a second Close, do nothing.
func (t *Telemetry) Close() error {
	if t == nil {
		return nil
	}
	return t.close()
}

func (t *Telemetry) closeAll() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var work sync.WaitGroup
	if t.traces != nil {
		work.Go(func() { t.reportUnsent(t.traces.Shutdown(ctx)) })
	}
	if t.metrics != nil {
		work.Go(func() { t.reportUnsent(t.metrics.Shutdown(ctx)) })
	}
	work.Wait()
	for _, c := range t.clients {
		c.end()
	}
	if t.file == nil {
		return nil
	}
	return t.file.close()
}

// reportUnsent reports that the receiver has not received everything.
func (t *Telemetry) reportUnsent(err error) {
	if err != nil {
		otel.Handle(err)
	}
}

// A onceHandler logs the first failure of an export, and no other: each batch would fail alike.
type onceHandler struct {
	log  *slog.Logger
	once sync.Once
}

// Handle implements [otel.ErrorHandler].
func (h *onceHandler) Handle(err error) {
	h.once.Do(func() {
		h.log.Warn("telemetry cannot be sent; the runs continue, and there will be no other warning", "error", err)
	})
}

// meters are the instruments for metrics.
type meters struct {
	operation, tool, agent, workflow metric.Float64Histogram
	tokens                           metric.Int64Histogram
	cost                             metric.Float64Counter
	runs, questions                  metric.Int64Counter
}

// These are the bounds that the conventions recommend.
var (
	operationBounds = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	tokenBounds     = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	agentBounds     = []float64{0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6}
	workflowBounds  = []float64{1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200}
)

// newMeters makes the instruments. Their names and units are constants, so that no error is possible.
func newMeters(m metric.Meter) (i meters) {
	seconds := func(name, about string, bounds []float64) metric.Float64Histogram {
		h, _ := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(about), metric.WithExplicitBucketBoundaries(bounds...))
		return h
	}
	i.operation = seconds("gen_ai.client.operation.duration", "GenAI operation duration.", operationBounds)
	i.tool = seconds("gen_ai.execute_tool.duration", "The duration of a tool call.", operationBounds)
	i.agent = seconds("gen_ai.invoke_agent.duration", "The time that a process worked on a run of an agent.", agentBounds)
	i.workflow = seconds("gen_ai.workflow.duration", "The time that a process worked on a run of a graph.", workflowBounds)
	i.tokens, _ = m.Int64Histogram("gen_ai.client.token.usage", metric.WithUnit("{token}"), metric.WithDescription("Number of input and output tokens used."), metric.WithExplicitBucketBoundaries(tokenBounds...))
	i.cost, _ = m.Float64Counter("raddle.cost", metric.WithUnit("{USD}"), metric.WithDescription("The cost of replies with a known price, in US dollars."))
	i.runs, _ = m.Int64Counter("raddle.runs", metric.WithUnit("{run}"), metric.WithDescription("Runs that a process has stopped to work on, by their status."))
	i.questions, _ = m.Int64Counter("raddle.questions", metric.WithUnit("{question}"), metric.WithDescription("Questions that were asked."))
	return i
}
