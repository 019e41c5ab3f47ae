package builtin_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"raddle.dev/tool"
	"raddle.dev/tool/builtin"
)

// A tool works in the workspace of its host. It makes every call: ask for permission first.
func ExampleLookup() {
	dir, err := os.MkdirTemp("", "workspace")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host := builtin.Host{Workspace: dir}
	write, _ := builtin.Lookup("fs_write", host)
	read, _ := builtin.Lookup("fs_read.sh", host) // the name of a file means the same tool

	ctx := context.Background()
	result, err := write.Run(ctx, tool.Call{Args: []byte(`{"path":"notes/today","contents":"Buy bolts.\n"}`)})
	fmt.Println(result.Text(), err)
	fmt.Println(result.Changes[0].Kind, result.Changes[0].Added)
	result, err = read.Run(ctx, tool.Call{Args: []byte(`{"path":"notes/today"}`)})
	fmt.Println(result.Text(), err)
	// Output:
	// {"output":"The File contents were written to: notes/today"} <nil>
	// created 1
	// {"output":"1: Buy bolts.\n"} <nil>
}

// A group is a name for several tools.
func ExampleLookupGroup() {
	for _, t := range builtin.LookupGroup("memory", builtin.Host{Workspace: "/"}) {
		fmt.Println(t.Name, t.Effect)
	}
	// Output:
	// memory__forget idempotent
	// memory__save idempotent
	// memory__search read-only
}
