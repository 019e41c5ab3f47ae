package rag

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
)

// Keyword is the model of a base without vectors.
const Keyword = "keyword"

// A Purpose says why a text is embedded: some models treat questions and documents differently.
type Purpose string

// The purposes of embedding.
const (
	ForDocument Purpose = "document"
	ForQuery    Purpose = "query"
)

// An Embedder turns texts into vectors. It must be safe for concurrent use.
type Embedder interface {
	// Embed returns one vector for each text, in order, all of the same length. After an error the batch is tried
	// again, unless the error is an *[llm.Error] of a class for which a repetition cannot help. The wait is as long as
	// the error asks for, at most a minute.
	Embed(ctx context.Context, purpose Purpose, texts []string) ([][]float32, error)
}

// A Reranker orders texts by how well they answer a query. It must be safe for concurrent use.
type Reranker interface {
	// Rerank returns at most top indexes of texts, best first.
	Rerank(ctx context.Context, query string, texts []string, top int) ([]int, error)
}

// A VectorError says that an answer of an Embedder cannot be used. The base stays as it was.
type VectorError struct {
	Model  string
	Reason string
}

// Error says what is wrong with the answer.
func (e *VectorError) Error() string {
	return fmt.Sprintf("embedding model %s: %s", e.Model, e.Reason)
}

// embedTexts requests the vectors of texts, and repeats the request if that may help. The vectors have length one.
func embedTexts(ctx context.Context, e Embedder, r request) (vectors [][]float32, err error) {
	made, err := retryCall(ctx, r.attempts, func() (err error) {
		vectors, err = e.Embed(ctx, r.purpose, r.texts)
		return err
	})
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, failf("Failed to create embedding after %d attempts: %w", made, err)
	}
	return vectors, r.validateVectors(vectors)
}

// A request is one batch.
type request struct {
	model    string
	purpose  Purpose
	texts    []string
	attempts int
	dims     int // 0: not known yet
}

// validateVectors returns an error unless there is one usable vector for each text, and scales the vectors to length
// one.
func (r request) validateVectors(vectors [][]float32) error {
	bad := func(format string, args ...any) error {
		return &VectorError{Model: r.model, Reason: fmt.Sprintf(format, args...)}
	}
	if len(vectors) != len(r.texts) {
		return bad("%d vectors came back for %d texts", len(vectors), len(r.texts))
	}
	dims := r.dims
	for _, v := range vectors {
		if dims == 0 {
			dims = len(v)
		}
		switch {
		case len(v) == 0:
			return bad("an empty vector came back")
		case len(v) != dims:
			return bad("a vector of %d dimensions came back where %d are expected: another model answers, or its settings have changed; "+
				"remove the knowledge base to build it again", len(v), dims)
		case !normalizeVector(v):
			return bad("a vector came back that holds no finite numbers")
		}
	}
	return nil
}

// normalizeVector scales v to length one; it leaves a vector of zeros as it is. It reports whether all numbers are
// finite.
func normalizeVector(v []float32) bool {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return false
	}
	if sum == 0 {
		return true
	}
	scale := 1 / math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) * scale)
	}
	return true
}

// packVector and unpackVector convert vectors to and from little-endian float32.
func packVector(v []float32) []byte {
	out := make([]byte, 0, 4*len(v))
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

func unpackVector(to []float32, data []byte) {
	for i := range to {
		to[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
}
