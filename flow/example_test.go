package flow_test

import (
	"fmt"

	"raddle.dev/flow"
)

func ExampleParse() {
	_, err := flow.Parse("graph.yaml", []byte("name: demo\nstart: a\nnodes:\n  a: {type: end, id: b}\n"))
	fmt.Println(err)
	f, err := flow.Parse("graph.yaml", []byte("name: demo\nstart: a\nnodes:\n  a: {type: llm, prompt: '{{topic}}', next: b}\n  b: {type: end}\n"))
	fmt.Println(err)
	for _, finding := range f.Proof() {
		fmt.Println(finding)
	}
	// Output:
	// Node ID mismatch: key 'a' does not match node.id 'b'
	// <nil>
	// graph.yaml:4:27: warning: [a] `prompt` reads {{topic}}, but nothing sets `topic` on the path a (give it a value in initial_state: no node sets it)
}

func ExampleTemplate() {
	state := flow.NewObject(
		flow.Member{Key: "user", Value: flow.NewObject(flow.Member{Key: "name", Value: "Ada"})},
		flow.Member{Key: "scores", Value: []any{int64(3), 4.0}},
	)
	t := flow.ParseTemplate("{{user.name}} has {{scores}}, first {{scores[0]}}.")
	fmt.Println(t.Render(state.Get))
	_, err := flow.ParseTemplate("{{user.mail}} {{age}}").Render(state.Get)
	fmt.Println(err)
	// Output:
	// Ada has [3,4.0], first 3. <nil>
	// Template interpolation failed: 'user.mail', 'age' not found in state
}
