package script_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"raddle.dev/llm"
	"raddle.dev/llm/script"
)

func Example() {
	model, err := script.Parse("transcript.yaml", []byte(`
- match: capital of Norway
  text: Oslo.
- match: capital of Peru
  error: {status: 503, message: come back later}
- text: I do not know.
  repeat: true
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, prompt := range []string{"And the capital of Peru?", "What is the capital of Norway?", "Why?"} {
		reply, err := llm.Generate(context.Background(), model, llm.Request{Messages: []llm.Message{llm.User(prompt)}})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(reply.Text())
	}
	// Output:
	// provider overloaded (503): come back later
	// Oslo.
	// I do not know.
}

func ExampleRecorder() {
	dir, err := os.MkdirTemp("", "script")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	live, err := script.Parse("live", []byte("- text: Oslo."))
	if err != nil {
		fmt.Println(err)
		return
	}
	path := filepath.Join(dir, "transcript.yaml")
	recorder := &script.Recorder{Model: live, Path: path} // live would be a provider's model
	request := llm.Request{Messages: []llm.Message{llm.User("What is the capital of Norway?")}}
	if _, err := llm.Generate(context.Background(), recorder, request); err != nil {
		fmt.Println(err)
		return
	}

	replayed, err := script.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	reply, err := llm.Generate(context.Background(), replayed, request)
	fmt.Println(reply.Text(), err)
	// Output:
	// Oslo. <nil>
}
