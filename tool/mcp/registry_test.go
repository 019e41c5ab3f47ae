//go:build unix

package mcp

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/llm"
)

// everything is the reference server of the npm registry; .ci/prepare installs it.
const everything = "mcp-server-everything"

func TestExtraServerOfTheRegistryOverStdio(t *testing.T) {
	testneed.RequirePrograms(t, everything)
	f, err := Parse("mcp.json", []byte(`{"mcpServers":{"everything":{"command":"mcp-server-everything"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, f, Options{Direct: 100})
	useEverything(t, s)
	s.Close()
	if left := children(t); left != "" {
		t.Errorf("left running: %s", left)
	}
}

func TestExtraServerOfTheRegistryOverHTTP(t *testing.T) {
	testneed.RequirePrograms(t, everything)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command(everything, "streamableHttp")
	cmd.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "listening") {
		t.Log(lines.Text())
	}
	f, err := Parse("mcp.json", fmt.Appendf(nil, `{"mcpServers":{"everything":{"type":"http","url":"http://localhost:%d/mcp"}}}`, port))
	if err != nil {
		t.Fatal(err)
	}
	useEverything(t, open(t, f, Options{Direct: 100}))
}

func useEverything(t *testing.T, s *Servers) {
	t.Helper()
	all := tools(t, s, "everything")
	want(t, run(t, all["mcp__everything__echo"], `{"message":"žluť"}`), false, "Echo: žluť")
	want(t, run(t, all["mcp_invoke_everything"], `{"tool":"get-sum","arguments":{"a":2,"b":3}}`), false, "5")
	want(t, run(t, all["mcp_search_everything"], `{"query":"image"}`), false, `"get-tiny-image"`)
	want(t, run(t, all["mcp__everything__get-sum"], `{"a":"two"}`), true, "")
	r := run(t, all["mcp__everything__get-tiny-image"], `{}`)
	pictures := 0
	for _, p := range r.Content {
		if _, ok := p.(llm.Image); ok {
			pictures++
		}
	}
	if pictures != 1 {
		t.Errorf("%d pictures in %+v", pictures, r)
	}
}
