package builtin_test

import (
	"os"
	"path/filepath"
	"testing"

	"raddle.dev/tool"
	"raddle.dev/tool/builtin"
	"raddle.dev/tool/permission"
)

// TestWhatRunsWithoutAsking puts the tools and the defaults of permissions
// together.
func TestWhatRunsWithoutAsking(t *testing.T) {
	h := place(t, map[string]string{"a": "x"})
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(h.Workspace, "link")); err != nil {
		t.Fatal(err)
	}
	policy := permission.Policy{Workspace: h.Workspace}
	const allow, ask = permission.Allow, permission.Ask
	for _, c := range []struct {
		tool string
		args object
		want permission.Verdict
	}{
		{"fs_cat", object{"path": "a"}, allow},
		{"fs_cat", object{"path": "link/x"}, ask},
		{"fs_read", object{"path": "/etc/passwd"}, ask},
		{"fs_grep", object{"pattern": "x"}, allow},
		{"fs_grep", object{"pattern": "x", "path": ".."}, ask},
		{"fs_glob", object{"pattern": "../*"}, allow}, // it looks below the workspace only
		{"fs_write", object{"path": "new/a", "contents": "x"}, allow},
		{"fs_write", object{"path": "link/a", "contents": "x"}, ask},
		{"fs_write", object{"path": "../a", "contents": "x"}, ask},
		{"fs_patch", object{"path": ".git/config", "contents": "x"}, ask},
		{"fs_rm", object{"path": "/etc/hosts"}, ask},
		{"execute_command", object{"command": "ls -l | head"}, allow},
		{"execute_command", object{"command": "rm -rf a"}, ask},
		{"execute_command", object{"command": "true && rm -rf a"}, ask},
		{"execute_command", object{"command": "echo $(rm -rf a)"}, ask},
		{"execute_command", object{"command": "bash -c 'rm -rf a'"}, ask},
		{"execute_command", object{"command": "true; curl http://example.com"}, ask},
		{"execute_command", object{"command": "echo x > ../a"}, ask},
		{"execute_py_code", object{"code": "1"}, ask},
		{"execute_sql_code", object{"code": "select 1"}, ask},
		{"fetch_url_via_curl", object{"url": "https://example.com"}, ask},
		{"get_current_weather", object{"location": "x"}, ask},
		{"web_search_tavily", object{"query": "x"}, ask},
		{"send_twilio", object{"to_number": "1", "message": "x"}, ask},
		{"query_jira_issues", object{"jql_query": "x"}, ask},
		{"get_current_time", object{}, allow},
	} {
		d, err := policy.Decide(lookup(t, h, c.tool), tool.Call{Args: raw(t, c.args)})
		if err != nil || d.Verdict != c.want {
			t.Errorf("%s %v: %v %q %v, want %v", c.tool, c.args, d.Verdict, d.Reasons, err, c.want)
		}
	}
}

// TestWithoutBashAskAsShDoes looks at a text that bash and sh read differently.
func TestWithoutBashAskAsShDoes(t *testing.T) {
	dir := t.TempDir()
	policy := permission.Policy{Workspace: dir}
	call := tool.Call{Args: raw(t, object{"command": "ls &>x danger"})}
	for path, want := range map[string]permission.Verdict{"/usr/bin:/bin": permission.Allow, dir: permission.Ask} {
		d, err := policy.Decide(lookup(t, builtin.Host{Workspace: dir, Env: []string{"PATH=" + path}}, "execute_command"), call)
		if err != nil || d.Verdict != want {
			t.Errorf("with PATH %s: %v %q %v, want %v", path, d.Verdict, d.Reasons, err, want)
		}
	}
}
