package replay

import (
	"testing"
)

// Of a server that was still starting, a replay offers the functions that were called.
func TestServerThatWasStarting(t *testing.T) {
	p := &player{servers: []string{"mcp_search_slow", "mcp_invoke_slow", "mcp_search_other", "mcp__slow__look", "mcp__x__of_slow"}}
	var names []string
	for _, v := range p.startingTools("slow") {
		names = append(names, v.Name)
	}
	if len(names) != 2 || names[0] != "mcp_search_slow" || names[1] != "mcp_invoke_slow" {
		t.Errorf("the functions are %v", names)
	}
}
