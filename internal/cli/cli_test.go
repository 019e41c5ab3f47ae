package cli_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"raddle.dev/internal/cli"
	"raddle.dev/internal/testneed"
)

// The test binary is also the program: under the name raddle it runs the command
// line.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"raddle": func() { os.Exit(cli.Main(os.Args[1:])) },
	})
}

// TestScripts runs the archives of testdata/script. Their own commands are:
//
//	exits CODE COMMAND...   runs a command that must exit with CODE
//	conforms SCHEMA         holds every line of the last output to a schema
//	run NAME                puts the id of the newest run into a variable
//	json NAME PATH          puts a value of the last output into a variable
func TestScripts(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	testscript.Run(t, scriptParams("testdata/script"))
}

// scriptParams returns how the archives of a directory are run.
func scriptParams(dir string) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			for _, kv := range surroundings(e.WorkDir) {
				name, value, _ := strings.Cut(kv, "=")
				e.Setenv(name, value)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "conforms": conforms, "run": newestRun, "json": jsonValue,
		},
	}
}

// surroundings returns an environment that separates a raddle process of a test from
// everything outside its directory.
func surroundings(dir string) []string {
	return []string{
		"HOME=" + filepath.Join(dir, ".home"),
		"XDG_CONFIG_HOME=" + filepath.Join(dir, ".config"),
		"XDG_STATE_HOME=" + filepath.Join(dir, ".state"),
		"XDG_CACHE_HOME=" + filepath.Join(dir, ".cache"),
		"TERM=xterm-256color",
		"GORACE=atexit_sleep_ms=0", // otherwise every process under the race detector takes a second longer
	}
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func conforms(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: conforms SCHEMA")
	}
	schema, err := strictSchema(args[0])
	ts.Check(err)
	n := 0
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		ts.Check(err)
		if err := schema.Validate(v); err != nil {
			ts.Fatalf("%s\n%v", line, err)
		}
		n++
	}
	if n == 0 {
		ts.Fatalf("there was no output")
	}
}

// strictSchema returns a published schema that accepts nothing it does not name, so
// that the schema cannot lag behind the output.
func strictSchema(name string) (*jsonschema.Schema, error) {
	text, err := os.ReadFile(filepath.Join("schema", name+".json"))
	if err != nil {
		return nil, err
	}
	var doc any
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	seal(doc, true)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(name+".json", doc); err != nil {
		return nil, err
	}
	return c.Compile(name + ".json")
}

// seal closes every object of a schema whose members are named. The alternatives
// of the envelope name only some of its members.
func seal(v any, top bool) {
	m, ok := v.(map[string]any)
	if !ok {
		if list, ok := v.([]any); ok {
			for _, item := range list {
				seal(item, false)
			}
		}
		return
	}
	if m["properties"] != nil && (m["type"] == "object" || top) {
		m["additionalProperties"] = false
	}
	for _, item := range m {
		seal(item, false)
	}
}

// newestRun implements "run NAME".
func newestRun(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: run NAME")
	}
	ts.Check(ts.Exec("raddle", "runs", "ls", "--output", "json"))
	var runs []struct{ Run string }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &runs))
	if len(runs) == 0 {
		ts.Fatalf("there are no runs")
	}
	ts.Setenv(args[0], runs[0].Run)
}

// jsonValue implements "json NAME PATH": PATH is names and indices separated by dots.
func jsonValue(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: json NAME PATH")
	}
	lines := strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n")
	var v any
	ts.Check(json.Unmarshal([]byte(lines[len(lines)-1]), &v))
	for _, key := range strings.Split(args[1], ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[key]
		case []any:
			i, err := strconv.Atoi(key)
			ts.Check(err)
			if i >= len(at) {
				ts.Fatalf("%s: there are only %d elements", args[1], len(at))
			}
			v = at[i]
		default:
			ts.Fatalf("%s: %v has no members", args[1], at)
		}
	}
	if s, ok := v.(string); ok {
		ts.Setenv(args[0], s)
		return
	}
	b, err := json.Marshal(v)
	ts.Check(err)
	ts.Setenv(args[0], string(b))
}
