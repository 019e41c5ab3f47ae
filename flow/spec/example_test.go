package spec_test

import (
	"fmt"

	"raddle.dev/flow/spec"
)

// Eval keeps the type of a value that is alone in a template; Render makes a text of it.
func ExampleParseTemplate() {
	state := map[string]any{"city": "Valletta", "days": []any{int64(3), int64(4)}}
	lookup := func(key string) (any, bool) { v, ok := state[key]; return v, ok }
	for _, text := range []string{"{{days[1]}}", "to {{city}} for {{days}} days", "{{weather}} in {{city}}"} {
		t := spec.ParseTemplate(text)
		v, err := t.Eval(lookup)
		fmt.Printf("%v %T %v %v\n", t.Keys(), v, v, err)
	}
	fmt.Println(spec.ParseTemplate("{{weather}} in {{city}}").RenderLenient(lookup))
	// Output:
	// [days] int64 4 <nil>
	// [city days] string to Valletta for [3,4] days <nil>
	// [weather city] string  Template interpolation failed: 'weather' not found in state
	//  in Valletta
}

// An unknown key is not an error: it is among the findings, with its position.
func ExampleParseConfig() {
	c, err := spec.ParseConfig("config.yaml", []byte("name: helper\ndescription: Helps.\nmax_agent_depth: 2\ncolour: red\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Name, c.Team.MaxDepth)
	for _, f := range c.Findings {
		fmt.Println(f)
	}
	// Output:
	// helper 2
	// config.yaml:4:1: warning: unknown key `colour` is ignored
}
