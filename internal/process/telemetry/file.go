package telemetry

import (
	"context"
	"fmt"
	"os"
	"sync"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// A fileExporter appends spans to a file: each as an export request on a line of its own, as
// soon as it has ended.
type fileExporter struct {
	redact redactFunc

	mu     sync.Mutex
	file   *os.File
	failed error // the first failure
}

// openFile opens the file of a trace. Lines are added to a file that exists.
func openFile(path string, redact redactFunc) (*fileExporter, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &fileExporter{redact: redact, file: f}, nil
}

// ExportSpans implements [sdktrace.SpanExporter].
func (e *fileExporter) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	line, err := encodeSpans(spans, e.redact)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed == nil {
		if _, err = e.file.Write(append(line, '\n')); err != nil {
			e.failed = fmt.Errorf("the trace is not complete: %w", err)
		}
	}
	return nil // close returns it
}

// Shutdown implements [sdktrace.SpanExporter].
func (e *fileExporter) Shutdown(context.Context) error { return nil }

// close closes the file, and returns the first failure.
func (e *fileExporter) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.file.Close(); e.failed == nil && err != nil {
		e.failed = fmt.Errorf("the trace is not complete: %w", err)
	}
	return e.failed
}
