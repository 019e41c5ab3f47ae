package telemetry

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"raddle.dev/flow"
	"raddle.dev/rag"
)

// ownDocuments is the data source of the documents of an agent itself.
const ownDocuments = "documents"

// WrapSearch returns a search of knowledge bases that has spans.
func (t *Telemetry) WrapSearch(next flow.SearchFunc) flow.SearchFunc {
	return func(ctx context.Context, q flow.SearchRequest) ([]rag.Hit, error) {
		r := recordingOf(ctx)
		if r == nil {
			return next(ctx, q)
		}
		began := time.Now()
		base := cmp.Or(q.Node, ownDocuments)
		list := []attribute.KeyValue{attrOperation.String(operationRetrieval), attrDataSource.String(base)}
		if q.TopK > 0 {
			list = append(list, attrTopK.Float64(float64(q.TopK)))
		}
		if t.setup.Settings.Content {
			list = append(list, t.text(attrQuery, q.Query))
		}
		ctx, s := r.start(ctx, operationRetrieval+" "+base, trace.SpanKindClient, list...)
		hits, err := next(ctx, q)
		measured := []attribute.KeyValue{attrOperation.String(operationRetrieval)}
		if err != nil {
			r.failSpan(s, err)
			measured = append(measured, attrErrorType.String(errorTypeOr(err)))
		} else {
			s.SetAttributes(attrHits.Int(len(hits)))
		}
		if t.setup.Settings.Content && len(hits) > 0 {
			s.SetAttributes(t.text(attrDocuments, encodeHits(hits)))
		}
		t.meters.operation.Record(context.Background(), time.Since(began).Seconds(), metric.WithAttributes(measured...))
		s.End()
		return hits, err
	}
}

// encodeHits returns what a search found in the form of the conventions, without the texts.
func encodeHits(hits []rag.Hit) string {
	type document struct {
		ID    string  `json:"id"`
		Score float64 `json:"score"`
	}
	list := make([]document, len(hits))
	for i, h := range hits {
		list[i] = document{h.Path + "#" + strconv.Itoa(h.Chunk), h.Score}
	}
	text, _ := json.Marshal(list) // scores are finite
	return string(text)
}
