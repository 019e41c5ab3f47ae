package toolbox

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/testkit/testfile"
)

// Where the redactor finds secrets: in the environment, in files of variables, in the configuration, in stored keys and
// in the entries of servers.
func TestWhereSecretsAre(t *testing.T) {
	s := newTestShared(t)
	s.env = environ.Environ{
		"SERVICE_TOKEN=secret-of-the-environment",
		"PLAIN=plain-of-the-environment",
		"MY_KEY=key-that-a-client-names",
		"PATH=/usr/bin",
	}
	s.Config = &config.Config{Clients: []config.Client{{
		Name:    "own",
		Type:    "openai-compatible",
		KeyVar:  "MY_KEY",
		Base:    "https://me:secret-of-an-address@example.com/v1",
		Headers: map[string]string{"X-Auth": "secret-of-a-header"},
	}}}
	s.StoredKeys = func() []string { return []string{"secret-that-was-stored"} }
	testfile.WriteFile(t, filepath.Join(s.Dirs.Config, ".env"), "CONFIG_PASSWORD=secret-of-the-configuration\n")
	testfile.WriteFile(t, filepath.Join(s.Dirs.Work, ".env"), "WORK_PASSWORD=secret-of-the-workspace\nWORK_NAME=plain-of-the-workspace\n")
	testfile.WriteFile(t, filepath.Join(s.Dirs.Functions, "mcp.json"), `{"mcpServers":{"a":{"command":"x","env":{"A_TOKEN":"secret-of-a-server"}}}}`)
	for _, text := range []string{
		"secret-of-the-environment", "key-that-a-client-names", "secret-of-an-address", "secret-of-a-header", "secret-that-was-stored",
		"secret-of-the-configuration", "secret-of-the-workspace", "secret-of-a-server",
	} {
		if got := s.SecretSet().Text("it is " + text + "."); strings.Contains(got, text) {
			t.Errorf("not redacted: %s", got)
		}
	}
	for _, text := range []string{"plain-of-the-environment", "plain-of-the-workspace", "/usr/bin"} {
		if got := s.SecretSet().Text(text); got != text {
			t.Errorf("%s becomes %s", text, got)
		}
	}
	for name, c := range map[string]struct {
		value string
		want  bool
	}{
		"SERVICE_TOKEN": {"secret-of-the-environment", true},
		"COPY":          {"x secret-of-the-workspace x", true},
		"PLAIN":         {"plain-of-the-environment", false},
		"PATH":          {"/home/secret-of-the-workspace/bin", false}, // programs need it
		"path":          {"/home/secret-of-the-workspace/bin", false},
	} {
		if got := s.isSecretVariable(name, c.value); got != c.want {
			t.Errorf("%s=%s is a secret: %t", name, c.value, got)
		}
	}
}

// Scripts get the environment without the keys of models, and without the store if its address has a password.
func TestEnvironmentOfScripts(t *testing.T) {
	s := newTestShared(t)
	for store, want := range map[string]bool{"postgres://me:a-long-password@db/raddle": false, "sqlite:runs.db": true} {
		s.env = environ.Environ{"OPENAI_API_KEY=k", "OTHER=x", storeVariable + "=" + store}
		env := environ.Environ(s.ScriptEnv())
		if env.Get("OPENAI_API_KEY") != "" || env.Get("OTHER") != "x" || (env.Get(storeVariable) != "") != want {
			t.Errorf("with the store %s: %q", store, env)
		}
	}
	s.env = environ.Environ{"OPENAI_API_KEY=k"}
	if env := s.ScriptEnv(); env == nil || len(env) != 0 {
		t.Errorf("%#v is not an empty environment", env)
	}
}

// A variable of an agent may name one of the environment: only its tools get that value, and it is redacted.
func TestVariablesThatNameOthers(t *testing.T) {
	s := newTestShared(t)
	s.env = environ.Environ{"SERVICE=value-of-the-service"}
	values := map[string]string{"api_token": "Bearer {{SERVICE}}", "other": "{{MISSING}} {{__later__}} {{ SERVICE }}", "plain": "x"}
	got := s.resolveVariables(values)
	if got["api_token"] != "Bearer value-of-the-service" || got["other"] != values["other"] || got["plain"] != "x" {
		t.Errorf("%q", got)
	}
	if text := s.SecretSet().Text("Bearer value-of-the-service"); strings.Contains(text, "value-of-the-service") {
		t.Errorf("not redacted: %s", text)
	}
	problems := s.findUnresolvedVariables("helper", values)
	if len(problems) != 1 || !strings.Contains(problems[0], `"other" of agent helper names {{MISSING}}`) || !strings.HasSuffix(problems[0], "Set MISSING") {
		t.Errorf("%q", problems)
	}
}

// Packages of the workspace are used after consent to all that is in them, by this process as it was when it looked
// first.
func TestPackagesNeedConsent(t *testing.T) {
	s := newTestShared(t)
	modules := filepath.Join(s.Dirs.Work, "node_modules")
	venv := filepath.Join(s.Dirs.Work, ".venv")
	named := filepath.Join(s.Dirs.Work, "agents", "a")
	between := filepath.Join(s.Dirs.Work, "agents", "node_modules")
	for _, dir := range []string{modules, venv, between} {
		testfile.WriteFile(t, filepath.Join(dir, "x", "index.js"), "1")
	}
	testfile.WriteFile(t, filepath.Join(named, "config.yaml"), "model: x\n")
	tb := s.NewToolbox(s.Dirs.Work, "")
	if got, want := tb.FoundPackages(named), []string{venv, between, modules}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if got, want := tb.PackageDirs(named), []string{s.Dirs.Functions}; !slices.Equal(got, want) {
		t.Errorf("without consent: %q, want %q", got, want)
	}
	if s.TrustsTree(modules) {
		t.Error("it is trusted without consent")
	}
	if err := s.RecordConsent(ImplicitDir{Dir: modules, Packages: true}); err != nil {
		t.Fatal(err)
	}
	if got, want := s.NewToolbox(s.Dirs.Work, "").PackageDirs(named), []string{s.Dirs.Functions, modules}; !slices.Equal(got, want) || !s.TrustsTree(modules) {
		t.Errorf("with consent: %q, want %q", got, want)
	}
	testfile.WriteFile(t, filepath.Join(modules, "x", "index.js"), "2")
	next := NewShared(s.Dirs, s.Config, s.env, nil)
	t.Cleanup(func() { _ = next.Close() })
	if next.TrustsTree(modules) {
		t.Error("it is trusted after a change")
	}
	for _, dir := range []string{venv, between} {
		if err := s.RecordRefusal(ImplicitDir{Dir: dir, Packages: dir == venv}); err != nil {
			t.Fatal(err)
		}
		if _, no, err := s.consentStore().LookUpConsent(dir); err != nil || no != (dir == venv) {
			t.Errorf("%s is refused: %t, %v", dir, no, err)
		}
	}
}

// Programs that an entry of PATH leads to belong to the environment or the node_modules around them.
func TestRootsOfPackages(t *testing.T) {
	ws := t.TempDir()
	testfile.WriteFile(t, filepath.Join(ws, "env", "pyvenv.cfg"), "")
	for dir, want := range map[string]string{
		"node_modules/.bin": "node_modules",
		"a/.venv/bin":       "a/.venv",
		"a/venv/bin":        "a/venv",
		"env/bin":           "env",
		"tools/bin":         "tools/bin",
	} {
		if got := packageRoot(filepath.Join(ws, filepath.FromSlash(dir)), ws); got != filepath.Join(ws, filepath.FromSlash(want)) {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
	}
}

// Skills of the workspace are used after consent; the user's own always are.
func TestSkillsNeedConsent(t *testing.T) {
	s := newTestShared(t)
	theirs := filepath.Join(s.Dirs.Work, ".raddle", skillsDir)
	own := filepath.Join(s.Dirs.Config, skillsDir)
	testfile.WriteFile(t, filepath.Join(theirs, "cook", "SKILL.md"), "---\nname: cook\ndescription: Cooks.\n---\nCook.\n")
	if got := s.NewToolbox(s.Dirs.Work, "").SkillDirs(); !slices.Equal(got, []string{own}) {
		t.Errorf("without consent: %q", got)
	}
	if err := s.RecordConsent(ImplicitDir{Dir: theirs, Skills: true}); err != nil {
		t.Fatal(err)
	}
	if got := s.NewToolbox(s.Dirs.Work, "").SkillDirs(); !slices.Equal(got, []string{theirs, own}) {
		t.Errorf("with consent: %q", got)
	}
	testfile.WriteFile(t, filepath.Join(theirs, "cook", "run.sh"), "x")
	next := NewShared(s.Dirs, s.Config, s.env, nil)
	t.Cleanup(func() { _ = next.Close() })
	if got := next.NewToolbox(s.Dirs.Work, "").SkillDirs(); !slices.Equal(got, []string{own}) {
		t.Errorf("after a change: %q", got)
	}
	if got := next.NewToolbox(s.Dirs.Work, filepath.Dir(theirs)).SkillDirs(); !slices.Equal(got, []string{theirs, own}) {
		t.Errorf("of a directory that the user named: %q", got)
	}
}
