package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"raddle.dev/rag"
)

// WrapEmbedders returns a function that opens embedding models whose requests have spans.
func (t *Telemetry) WrapEmbedders(open func(model string) (rag.Embedder, error)) func(model string) (rag.Embedder, error) {
	return func(id string) (rag.Embedder, error) {
		opened, err := open(id)
		if err != nil {
			return nil, err
		}
		return &embedder{opened, id, t}, nil
	}
}

// embedder is an embedding model whose requests have spans.
type embedder struct {
	rag.Embedder
	id        string
	telemetry *Telemetry
}

// Embed implements [rag.Embedder].
func (m *embedder) Embed(ctx context.Context, purpose rag.Purpose, texts []string) ([][]float32, error) {
	r := recordingOf(ctx)
	if r == nil {
		return m.Embedder.Embed(ctx, purpose, texts)
	}
	began := time.Now()
	provider, name := splitModelID(m.id)
	common := []attribute.KeyValue{attrOperation.String(operationEmbeddings), attrProvider.String(provider), attrRequestModel.String(name)}
	ctx, s := r.start(ctx, operationEmbeddings+" "+name, trace.SpanKindClient, append(common[:len(common):len(common)], attrTexts.Int(len(texts)))...)
	vectors, err := m.Embedder.Embed(ctx, purpose, texts)
	if err != nil {
		r.failSpan(s, err)
		common = append(common, attrErrorType.String(errorTypeOr(err)))
	} else if len(vectors) > 0 {
		s.SetAttributes(attrDimensions.Int(len(vectors[0])))
	}
	m.telemetry.meters.operation.Record(context.Background(), time.Since(began).Seconds(), metric.WithAttributes(common...))
	s.End()
	return vectors, err
}
