package shape_test

import (
	"context"
	"fmt"
	"log"

	"raddle.dev/agent"
	"raddle.dev/agent/shape"
	"raddle.dev/graph"
	"raddle.dev/tool"
)

// The first answer does not fit the type, and is asked for once more.
func ExampleNew() {
	type count struct {
		Article string `json:"article"`
		Number  int    `json:"number" jsonschema:"how many there are"`
	}
	s, err := shape.New[count]()
	if err != nil {
		log.Fatal(err)
	}
	model := &scripted{texts: []string{`There are five bolts.`, `{"article": "bolts", "number": 5}`}}
	g, err := agent.Config{Model: model, AroundModel: []agent.ModelMiddleware{s.WrapModel}}.Compile()
	if err != nil {
		log.Fatal(err)
	}
	res, err := (&graph.Runner{Graph: g}).Invoke(context.Background(), graph.Input{Set: agent.Turn("How many bolts?")})
	if err != nil {
		log.Fatal(err)
	}
	c, err := s.Parse(agent.LastResponse(res.State))
	fmt.Printf("%+v %v after %d requests\n", c, err, len(model.requests))
	// Output:
	// {Article:bolts Number:5} <nil> after 2 requests
}

// A Go function becomes a tool: its arguments have the schema of the type.
func ExampleNewTool() {
	type query struct {
		Article string `json:"article" jsonschema:"its name in the catalogue"`
	}
	count, err := shape.NewTool("count", "How many of an article are in stock.", func(_ context.Context, q query) (map[string]int, error) {
		return map[string]int{q.Article: len(q.Article)}, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	count.Effect = tool.ReadOnly // it changes nothing: it may be called again after a crash
	for _, args := range []string{`{"article": "bolts"}`, `{"artcle": "bolts"}`} {
		r, err := count.Run(context.Background(), tool.Call{Args: []byte(args)})
		fmt.Println(r.Text(), r.Error, err)
	}
	// Output:
	// {"bolts":5} false <nil>
	// {"tool_call_error":"the arguments do not fit: validating root: unexpected additional properties [\"artcle\"]"} true <nil>
}
