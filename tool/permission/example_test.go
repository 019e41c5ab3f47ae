package permission_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"

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
	d, err := policy.Decide(context.Background(), shell, tool.Call{Args: json.RawMessage(`{"command": "go test ./... | tee log && mkdir cache"}`)})
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

// A rule says which calls it is about. An error says what is wrong with its text.
func ExampleParseRule() {
	r, err := permission.ParseRule("fs_write(src/**)")
	fmt.Println(r.Text, err)
	_, err = permission.ParseRule("any reed(src/**)")
	fmt.Println(err)
	// Output:
	// fs_write(src/**) <nil>
	// rule "any reed(src/**)": any must be followed by one of command, read, write, host, not "reed"; did you mean read?
}

// The answer "always" adds rules to a file, whose comments stay.
func ExampleAppendRules() {
	text, err := permission.AppendRules("permissions.yaml", []byte("# Ours.\nallow:\n  - execute_command(go test *)\n"), []string{"fs_write(src/**)"})
	fmt.Print(string(text))
	fmt.Println(err)
	// Output:
	// # Ours.
	// allow:
	//   - execute_command(go test *)
	//   - "fs_write(src/**)"
	// <nil>
}

// A person may narrow the rules of a question, not widen them.
func ExamplePolicy_CheckNarrowed() {
	policy := permission.Policy{Workspace: "/srv/project"}
	granted := []string{"fs_write(src/**)"}
	fmt.Println(policy.CheckNarrowed(granted, []string{"fs_write(src/api/**)"}))
	fmt.Println(policy.CheckNarrowed(granted, []string{"fs_write"}))
	// Output:
	// <nil>
	// the rule fs_write may allow more than fs_write(src/**): a rule can only be made narrower
}

// A consent holds as long as the scripts of a directory stay as they are.
func ExampleConsents() {
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	write("tools.sh", "echo one")
	consents := permission.Consents{Path: filepath.Join(dir, "consents.json")}
	hasConsent := func() bool {
		digest, _, err := permission.Digest(dir)
		if err != nil {
			log.Fatal(err)
		}
		ok, err := consents.HasConsent(dir, digest)
		if err != nil {
			log.Fatal(err)
		}
		return ok
	}

	fmt.Println(hasConsent())
	digest, files, err := permission.Digest(dir)
	fmt.Println(files, err, consents.RecordConsent(dir, digest))
	fmt.Println(hasConsent())
	write("tools.sh", "echo two")
	fmt.Println(hasConsent())
	// Output:
	// false
	// [tools.sh] <nil> <nil>
	// true
	// false
}
