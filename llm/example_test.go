package llm_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"raddle.dev/llm"
)

// shout is a model of one method.
type shout struct{}

func (shout) Stream(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		reply := llm.Reply{Message: llm.Message{Role: llm.RoleAssistant}, Stop: llm.StopEnd}
		for word := range strings.FieldsSeq(r.Messages[len(r.Messages)-1].Text()) {
			part := llm.Text{Text: strings.ToUpper(word) + "! "}
			reply.Message.Parts = append(reply.Message.Parts, part)
			if !yield(llm.Delta{Text: part.Text}, nil) {
				return
			}
		}
		yield(llm.Delta{Done: &reply}, nil)
	}
}

func Example() {
	ctx := context.Background()
	var model llm.Model = shout{} // or that of openai.New, anthropic.New, gemini.New, script.Open

	reply, err := llm.Generate(ctx, model, llm.Request{
		System:   "You are loud.",
		Messages: []llm.Message{llm.User("good morning")},
	})
	fmt.Println(reply.Text(), err)

	for delta, err := range model.Stream(ctx, llm.Request{Messages: []llm.Message{llm.User("good night")}}) {
		switch {
		case err != nil:
			fmt.Println("failed:", err)
		case delta.Done != nil:
			fmt.Println("stopped:", delta.Done.Stop)
		default:
			fmt.Printf("heard: %q\n", delta.Text)
		}
	}
	// Output:
	// GOOD! MORNING!  <nil>
	// heard: "GOOD! "
	// heard: "NIGHT! "
	// stopped: end
}

func ExampleError() {
	var err error = &llm.Error{
		Class: llm.RateLimited, Status: 429, Host: "api.example.org",
		Message: "too many requests", RetryAfter: 7 * time.Second,
	}
	fmt.Println(err)

	var failure *llm.Error
	if errors.As(err, &failure) && failure.IsTransient() {
		fmt.Println("again after", failure.RetryAfter)
	}
	// Output:
	// rate limit (429): api.example.org: too many requests
	// again after 7s
}
