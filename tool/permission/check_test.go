package permission_test

import (
	"encoding/json"
	"testing"

	"raddle.dev/tool"
	"raddle.dev/tool/permission"
)

func TestRulesForToolsThatDeclareNothing(t *testing.T) {
	touches := func(json.RawMessage) (tool.Touch, error) { return tool.Touch{}, nil }
	tools := []tool.Tool{
		{Name: "open_shell"}, {Name: "look", Effect: tool.ReadOnly}, {Name: "fs_write", Touches: touches}, {Name: "twice"}, {Name: "twice", Touches: touches},
	}
	list := rules(t, `allow: ["open_shell(*)", "open_shell(tool=x)", fs_write(src/**), "open_*(ls *)"]
ask: ["other(src/**)", "any read(x)", "*(x)", twice(x)]
deny:
  - open_shell
  - open_shell(touch *)
  - look(src/**)
`)
	err := permission.CheckTools([]permission.Rules{{}, list}, tools)
	const want = `the permission rules have faults:
  rules.yaml:1:66: rule "open_*(ls *)" can never match: the tool open_shell does not declare which files, commands or hosts it touches. Use open_* without a pattern, or compare its arguments: open_*(NAME=PATTERN)
  rules.yaml:5:5: rule "open_shell(touch *)" can never match: the tool open_shell does not declare which files, commands or hosts it touches. Use open_shell without a pattern, or compare its arguments: open_shell(NAME=PATTERN)
  rules.yaml:6:5: rule "look(src/**)" can never match: the tool look does not declare which files, commands or hosts it touches. Use look without a pattern, or compare its arguments: look(NAME=PATTERN)`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := permission.CheckTools([]permission.Rules{rules(t, "deny: [fs_write(x), look]")}, tools); err != nil {
		t.Errorf("good rules: %v", err)
	}
}
