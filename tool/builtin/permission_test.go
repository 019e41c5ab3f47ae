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
		{"memory__search", object{"query": "x"}, allow},
		{"memory__save", object{"key": "k", "value": "x"}, ask},
		{"memory__forget", object{"key": "k"}, ask},
	} {
		d, err := policy.Decide(t.Context(), lookup(t, h, c.tool), tool.Call{Args: raw(t, c.args)})
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
		d, err := policy.Decide(t.Context(), lookup(t, builtin.Host{Workspace: dir, Env: []string{"PATH=" + path}}, "execute_command"), call)
		if err != nil || d.Verdict != want {
			t.Errorf("with PATH %s: %v %q %v, want %v", path, d.Verdict, d.Reasons, err, want)
		}
	}
}

// A search passes over what a rule forbids, and says so. What is asked for by its name
// is denied.
func TestSearchLeavesOutWhatIsDenied(t *testing.T) {
	h := place(t, map[string]string{"sub/.env": "KEY=1", "sub/a.txt": "KEY=2", "secrets/deep/b": "KEY=3", "c.txt": "KEY=4"})
	if err := os.Symlink(filepath.Join(h.Workspace, "secrets"), filepath.Join(h.Workspace, "link")); err != nil {
		t.Fatal(err)
	}
	rules, err := permission.LoadRules("rules.yaml", []byte("deny: ['any read(**/.env)', any read(secrets), fs_glob(c.*)]"))
	if err != nil {
		t.Fatal(err)
	}
	policy := permission.Policy{Rules: []permission.Rules{rules}, Workspace: h.Workspace}
	open := h
	h.Hidden = policy.HiddenFilter
	const one, two = "(1 file or directory was left out: permission rules do not let this tool read it)", "(2 files or directories were left out: permission rules do not let this tool read them)"
	for _, c := range []struct {
		tool string
		args object
		want permission.Verdict
		text string
	}{
		{"fs_grep", object{"pattern": "KEY"}, permission.Allow, "c.txt:1:KEY=4\nsub/a.txt:1:KEY=2\n\n" + two},
		{"fs_grep", object{"pattern": "KEY", "path": "sub"}, permission.Allow, "sub/a.txt:1:KEY=2\n\n" + one},
		{"fs_grep", object{"pattern": "KEY", "path": "sub", "include": "*.env"}, permission.Allow, "No matches found\n" + one},
		{"fs_grep", object{"pattern": "KEY", "path": "sub/.env"}, permission.Deny, ""},
		{"fs_grep", object{"pattern": "KEY", "path": "secrets/deep"}, permission.Deny, ""},
		{"fs_grep", object{"pattern": "KEY", "path": "link"}, permission.Deny, ""},
		{"fs_glob", object{"pattern": "*", "path": "sub"}, permission.Allow, "sub/a.txt\n\n" + one},
		{"fs_glob", object{"pattern": "c*"}, permission.Allow, "No files found\n(3 files or directories were left out: permission rules do not let this tool read them)"},
		{"fs_ls", object{"path": "sub"}, permission.Allow, "a.txt\n"},
		{"fs_ls", object{"path": "secrets"}, permission.Deny, ""},
		{"fs_read", object{"path": "sub"}, permission.Allow, ".env\na.txt\n"},
		{"fs_read", object{"path": "sub/.env"}, permission.Deny, ""},
		{"fs_cat", object{"path": "link/deep/b"}, permission.Deny, ""},
		{"fs_patch", object{"path": "sub/.env", "contents": "@@\n-KEY=1\n+x"}, permission.Deny, ""},
	} {
		d, err := policy.Decide(t.Context(), lookup(t, h, c.tool), tool.Call{Args: raw(t, c.args)})
		if err != nil || d.Verdict != c.want {
			t.Errorf("%s %v: %v %q %v, want %v", c.tool, c.args, d.Verdict, d.Reasons, err, c.want)
		}
		if d.Verdict != permission.Allow {
			continue
		}
		if got := use(t, h, c.tool, c.args); got != c.text {
			t.Errorf("%s %v: %q, want %q", c.tool, c.args, got, c.text)
		}
	}
	// Where nothing is left out, as by a script of that name, the search is asked about.
	touches, ok := builtin.TouchesNamed("fs_grep", h)
	if !ok {
		t.Fatal("fs_grep is not known")
	}
	if d, err := policy.Decide(t.Context(), tool.Tool{Name: "fs_grep", Touches: touches}, tool.Call{Args: raw(t, object{"pattern": "KEY", "path": "sub"})}); err != nil || d.Verdict != permission.Ask {
		t.Errorf("a script: %v %v", d.Verdict, err)
	}
	if d, err := policy.Decide(t.Context(), lookup(t, open, "fs_grep"), tool.Call{Args: raw(t, object{"pattern": "KEY", "path": "sub"})}); err != nil || d.Verdict != permission.Ask {
		t.Errorf("without Hidden: %v %v", d.Verdict, err)
	}
}

// ~ is the home directory, which is outside the workspace: not a directory named ~.
func TestHomeDirectory(t *testing.T) {
	h := place(t, map[string]string{"a": "x"})
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "note"), []byte("at home"), 0o600); err != nil {
		t.Fatal(err)
	}
	policy := permission.Policy{Workspace: h.Workspace, Home: home}
	unset := h
	h.Env = append(h.Env, "HOME="+home)
	unset.Env = append(unset.Env, "HOME=")
	for _, name := range []string{"fs_cat", "fs_read", "fs_ls", "fs_write", "fs_mkdir", "fs_rm", "fs_patch", "fs_grep", "fs_glob"} {
		for path, outside := range map[string]bool{"~": true, "~/x": true, "~backup": false} {
			args := object{"path": path, "contents": "x", "pattern": "x"}
			d, err := policy.Decide(t.Context(), lookup(t, h, name), tool.Call{Args: raw(t, args)})
			if err != nil || (d.Verdict == permission.Ask) != outside {
				t.Errorf("%s %s: %v %q %v", name, path, d.Verdict, d.Reasons, err)
			}
		}
		if _, err := policy.Decide(t.Context(), lookup(t, h, name), tool.Call{Args: raw(t, object{"path": "~root/x", "contents": "x", "pattern": "x"})}); err == nil {
			t.Errorf("%s: ~root/x was taken", name)
		}
		if _, err := policy.Decide(t.Context(), lookup(t, unset, name), tool.Call{Args: raw(t, object{"path": "~/x", "contents": "x", "pattern": "x"})}); err == nil {
			t.Errorf("%s: ~ was taken though nobody knows what it stands for", name)
		}
	}
	if got := use(t, h, "fs_cat", object{"path": "~/note"}); got != "at home" {
		t.Errorf("got %q", got)
	}
	use(t, h, "fs_write", object{"path": "~/new", "contents": "x"})
	if _, err := os.Stat(filepath.Join(home, "new")); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(h.Workspace, "~")); err == nil {
		t.Error("there is a directory named ~")
	}
}
