//go:build unix

package repository_test

import (
	"bufio"
	"debug/elf"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// The steps of the Dockerfile, as far as a machine without containers can take them: the program is built as it says, needs
// nothing of the system, and serves with the command of the image in an empty directory.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	find := func(pattern string) string {
		t.Helper()
		m := regexp.MustCompile(`(?m)` + pattern).FindStringSubmatch(string(text))
		if m == nil {
			t.Fatalf("the Dockerfile has no line %s", pattern)
		}
		return m[1]
	}
	mod, err := os.ReadFile("go.mod")
	if version := find(`^FROM golang:(\d+\.\d+)\.\d+@sha256:[0-9a-f]{64} AS build$`); err != nil || !strings.Contains(string(mod), "\ngo "+version+".") {
		t.Errorf("the image builds with Go %s, go.mod has another version (%v)", version, err)
	}
	if user := find(`^USER (\d+):\d+$`); user == "0" {
		t.Error("the image runs as root")
	}
	program := filepath.Join(t.TempDir(), "raddle")
	build := exec.Command("sh", "-c", strings.Replace(find(`^RUN (CGO_ENABLED=0 go build .*?) && mkdir`), "/out/raddle", program, 1))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if runtime.GOOS == "linux" {
		file, err := elf.Open(program)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		for _, p := range file.Progs {
			if p.Type == elf.PT_INTERP {
				t.Error("the program needs libraries of the system")
			}
		}
	}
	var args []string
	if err := json.Unmarshal([]byte(find(`^CMD (\[.*\])$`)), &args); err != nil {
		t.Fatal(err)
	}
	for i, arg := range args {
		args[i] = strings.Replace(arg, "0.0.0.0:7777", "127.0.0.1:0", 1)
	}
	dir := t.TempDir()
	serve := exec.Command(program, args...)
	serve.Dir, serve.Env = dir, []string{"HOME=" + dir, "XDG_STATE_HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "RADDLE_SERVER_TOKEN=0123456789abcdef"}
	lines, err := serve.StderrPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = serve.Process.Kill() }()
	line, _ := bufio.NewReader(lines).ReadString('\n')
	_, rest, _ := strings.Cut(line, "raddle serves at ")
	url, _, _ := strings.Cut(rest, ";")
	res, err := http.Get(url + "/readyz")
	if err != nil {
		t.Fatalf("%v; the server printed %q", err, line)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("the server is not ready: %s", res.Status)
	}
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := serve.Wait(); err != nil {
		t.Errorf("the end of the server: %v", err)
	}
}
