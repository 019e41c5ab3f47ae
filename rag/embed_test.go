package rag

import (
	"context"
	"hash/fnv"
	"sync"

	"raddle.dev/rag/keyword"
)

// A wordModel embeds a text as the sum of fixed vectors of its words, and counts what it is asked.
type wordModel struct {
	dims int

	mu    sync.Mutex
	texts []string
	calls int
	fail  func(call int) error
}

func (m *wordModel) Embed(_ context.Context, purpose Purpose, texts []string) ([][]float32, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if m.fail != nil {
		if err := m.fail(m.calls); err != nil {
			return nil, err
		}
	}
	var all [][]float32
	for _, text := range texts {
		if purpose == ForDocument {
			m.texts = append(m.texts, text)
		}
		all = append(all, m.vector(text))
	}
	return all, nil
}

func (m *wordModel) vector(text string) []float32 {
	v := make([]float32, m.dims)
	for _, token := range keyword.Tokens(text) {
		h := fnv.New64a()
		h.Write([]byte(token))
		bits := h.Sum64()
		for range 4 {
			v[bits%uint64(m.dims)] += float32(int(bits>>32&3)) - 1
			bits = bits*6364136223846793005 + 1442695040888963407
		}
	}
	v[0] += 0.01
	return v
}

// asked returns the texts of documents since the last call.
func (m *wordModel) asked() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	texts := m.texts
	m.texts = nil
	return texts
}
