package shape_test

import (
	"context"
	"fmt"
	"log"

	"raddle.dev/agent"
	"raddle.dev/agent/shape"
	"raddle.dev/graph"
)

// The first answer does not fit the type, and is asked for once more.
func ExampleOf() {
	type count struct {
		Article string `json:"article"`
		Number  int    `json:"number" jsonschema:"how many there are"`
	}
	s, err := shape.Of[count]()
	if err != nil {
		log.Fatal(err)
	}
	model := &scripted{texts: []string{`There are five bolts.`, `{"article": "bolts", "number": 5}`}}
	g, err := agent.Config{Model: model, AroundModel: []agent.ModelMiddleware{s.Around}}.Compile()
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
