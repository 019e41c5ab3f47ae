//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// A scripted model changes a file while a person saves it, three times: nothing that the person has saved is lost, and the model gets there.
func TestPersonEditsAtTheSameTime(t *testing.T) {
	t.Parallel()
	needBash(t)
	const edit, person = `- tool_calls: [{name: fs_edit, args: {path: a.txt, old: "two", new: "2"}}]` + "\n", "- tool_calls: [{name: elsewhere, args: {}}]\n"
	const write = `- tool_calls: [{name: fs_write, args: {path: a.txt, contents: "lost\n"}}]` + "\n"
	const read = "- tool_calls: [{name: fs_read, args: {path: a.txt}}]\n"
	for name, c := range map[string]struct {
		transcript, want string
		refused          int
	}{
		"edits":        {edit + read + person + edit + person + edit + person + edit + edit, "one\n2\nmine\nmine\nmine\n", 4},
		"writes":       {write + read + person + write + write + person + write, "one\ntwo\nmine\nmine\n", 4},
		"read between": {read + person + write + read + write, "lost\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkplace(t, `
-- agent/config.yaml --
name: agent
model: script:t.yaml
global_tools: [fs]
-- agent/tools.sh --
# @cmd Saves the file as a person does.
# raddle: read-only
elsewhere() { echo mine >>a.txt; wc -l a.txt; }
-- a.txt --
one
two
`)
			w.write("agent/t.yaml", c.transcript+"- text: Done.\n")
			r := w.run("run", "./agent", "go", "--mode", "edits")
			if got := w.read("a.txt"); r.code != 0 || got != c.want {
				t.Errorf("exit code %d, the file is %q, want %q\n%s", r.code, got, c.want, r.err)
			}
			if n := strings.Count(r.err, "The call changed nothing."); n != c.refused {
				t.Errorf("%d calls were refused, want %d\n%s", n, c.refused, r.err)
			}
		})
	}
}

// A process that is killed inside of a patch of many files is resumed: the patch is made again, what was done of it is recognized, and a file that a
// person has changed since stays.
func TestKilledInsideOfAPatch(t *testing.T) {
	t.Parallel()
	for title, person := range map[string]bool{"alone": false, "and a person": true} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			for range 20 { // a run may end before it is killed
				if killInsideOfAPatch(t, person) {
					return
				}
			}
			t.Error("no run could be killed inside of the patch")
		})
	}
}

// killInsideOfAPatch kills a run inside of a patch, with or without a person who changes a file before it is resumed. It reports whether the run was
// killed before its end.
func killInsideOfAPatch(t *testing.T, person bool) bool {
	t.Helper()
	const files, size = 12, 4000 // the lines of a file: each takes long enough to be seen
	name := func(i int) string { return fmt.Sprintf("f%02d.txt", i) }
	text := func(i int) string {
		return fmt.Sprintf("first %d\n", i) + strings.Repeat("a line of the file\n", size) + "last\n"
	}
	w := newWorkplace(t, "\n-- agent/config.yaml --\nname: agent\nmodel: script:t.yaml\nglobal_tools: [fs]\n")
	patch, reads := &strings.Builder{}, []map[string]any{}
	patch.WriteString("*** Begin Patch\n")
	for i := range files {
		w.write(name(i), text(i))
		fmt.Fprintf(patch, "*** Update File: %s\n@@\n-first %d\n+FIRST %d\n+more\n", name(i), i, i)
		reads = append(reads, map[string]any{"name": "fs_read", "args": map[string]any{"path": name(i), "limit": 1}})
	}
	patch.WriteString("*** End Patch")
	transcript, err := json.Marshal([]map[string]any{{"tool_calls": reads},
		{"tool_calls": []map[string]any{{"name": "apply_patch", "args": map[string]any{"patch": patch.String()}}}}, {"text": "Done."}})
	if err != nil {
		t.Fatal(err)
	}
	w.write("agent/t.yaml", string(transcript))
	cmd := w.command("run", "./agent", "go", "-q", "--mode", "edits")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed
		close(ended)
	}()
	for first := w.read(name(0)); w.read(name(0)) == first; {
		select {
		case <-ended:
			return false
		default:
		}
	}
	_ = cmd.Process.Kill()
	<-ended
	run := w.runs()[0]
	if run.Status != "crashed" {
		return false
	}
	done := 0
	for i := range files {
		if strings.HasPrefix(w.read(name(i)), "FIRST") {
			done++
		}
	}
	last := files - 1
	if person && done < files {
		w.write(name(last), "mine\n"+text(last))
	}
	r := w.run("resume", "-q", run.Run, "--in-doubt", "retry")
	if r.code != 0 || r.out != "Done.\n" {
		t.Fatalf("killed after %d files: exit code %d, %q\n%s", done, r.code, r.out, r.err)
	}
	if person && done < files {
		if got := w.read(name(last)); got != "mine\n"+text(last) {
			t.Errorf("killed after %d files, the person's file begins with %q", done, got[:20])
		}
		return true
	}
	for i := range files {
		if want := fmt.Sprintf("FIRST %d\nmore\n", i) + strings.TrimPrefix(text(i), fmt.Sprintf("first %d\n", i)); w.read(name(i)) != want {
			t.Errorf("killed after %d files: file %d begins with %q", done, i, w.read(name(i))[:20])
		}
	}
	if left, err := filepath.Glob(filepath.Join(w.dir, ".raddle-*")); err != nil || len(left) > 1 {
		t.Errorf("files are left: %v, %v", left, err)
	}
	t.Logf("killed after %d of %d files", done, files)
	return true
}
