package permission_test

import (
	"encoding/json"
	"fmt"
	"log"

	"raddle.dev/tool"
	"raddle.dev/tool/permission"
)

func ExamplePolicy_Decide() {
	user, err := permission.LoadRules("permissions.yaml", []byte("allow:\n  - execute_command(go test *)\n"))
	if err != nil {
		log.Fatal(err)
	}
	policy := permission.Policy{Rules: []permission.Rules{user}, Workspace: "/srv/project"}
	shell := tool.Tool{Name: "execute_command", Touches: func(args json.RawMessage) (tool.Touch, error) {
		var a struct{ Command string }
		err := json.Unmarshal(args, &a)
		return tool.Touch{Commands: []string{a.Command}}, err
	}}
	d, err := policy.Decide(shell, tool.Call{Args: json.RawMessage(`{"command": "go test ./... | tee log && mkdir cache"}`)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d.Verdict, d.Answers())
	for _, reason := range d.Reasons {
		fmt.Println("-", reason)
	}
	fmt.Println(d.Grant)
	// Output:
	// ask [once run always no]
	// - tee log is not a command that raddle knows to only read
	// - mkdir cache is not a command that raddle knows to only read
	// [execute_command(tee log) execute_command(mkdir cache)]
}
