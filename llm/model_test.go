package llm

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// streamFunc is a Model made of a function.
type streamFunc func(context.Context, Request) iter.Seq2[Delta, error]

func (f streamFunc) Stream(ctx context.Context, r Request) iter.Seq2[Delta, error] { return f(ctx, r) }

func TestGenerate(t *testing.T) {
	reply := Reply{Message: Message{Role: RoleAssistant, Parts: []Part{Text{Text: "ab"}}}}
	failure := errors.New("no")
	for _, c := range []struct {
		name   string
		stream func(yield func(Delta, error) bool)
		want   Reply
		err    string
	}{
		{"reply", func(y func(Delta, error) bool) {
			_ = y(Delta{Text: "a"}, nil) && y(Delta{Text: "b"}, nil) && y(Delta{Done: &reply}, nil)
		}, reply, ""},
		{"failure", func(y func(Delta, error) bool) { _ = y(Delta{Text: "a"}, nil) && y(Delta{}, failure) }, Reply{}, "no"},
		{"no end", func(y func(Delta, error) bool) { y(Delta{Text: "a"}, nil) }, Reply{},
			"Connection reset: the stream ended without a reply"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := streamFunc(func(context.Context, Request) iter.Seq2[Delta, error] { return c.stream })
			got, err := Generate(t.Context(), m, Request{})
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != c.err {
				t.Errorf("error is %q, want %q", text, c.err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("reply (-want +got):\n%s", d)
			}
		})
	}
}

func TestUsageAdd(t *testing.T) {
	got := Usage{Input: 1, Output: 2, Cached: 3, Written: 6, Reasoning: 4}.Add(Usage{Input: 10, Output: 20, Cached: 30, Written: 60, Reasoning: 40})
	if want := (Usage{Input: 11, Output: 22, Cached: 33, Written: 66, Reasoning: 44}); got != want {
		t.Errorf("sum is %+v, want %+v", got, want)
	}
}
