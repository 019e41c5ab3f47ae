package conversation_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/process/conversation"
)

func (x *place) read(name string) string {
	text, err := os.ReadFile(filepath.Join(x.work, name))
	if err != nil {
		return "none"
	}
	return string(text)
}

func writeCall(path, text string) string {
	args, _ := json.Marshal(map[string]string{"path": path, "contents": text})
	return "CALL fs_write " + string(args)
}

// readCall returns a call that reads a file, so that a later one may change it.
func readCall(path string) string {
	args, _ := json.Marshal(map[string]string{"path": path})
	return "CALL fs_cat " + string(args) + "\n"
}

// A rewind restores what the turns did to files, newest first, and leaves alone what was changed outside of the conversation.
func TestRewind(t *testing.T) {
	x := newPlace(t)
	ctx := t.Context()
	x.write("kept.txt", "first\n")
	x.write("removed.txt", "old\n")
	x.write("theirs.txt", "a\n")
	x.write("between.txt", "0\n")
	must(t, os.Chmod(filepath.Join(x.work, "kept.txt"), 0o640))
	_, c := x.open("")
	x.say(c, "hello")
	x.say(c, readCall("kept.txt")+readCall("theirs.txt")+readCall("between.txt")+writeCall("kept.txt", "second\n")+"\n"+writeCall("theirs.txt", "b\n")+"\n"+writeCall("between.txt", "1\n")+"\n"+writeCall("sub/made.txt", "new\n"))
	x.write("between.txt", "by hand\n")
	x.say(c, readCall("removed.txt")+readCall("between.txt")+writeCall("kept.txt", "third\n")+"\n"+`CALL fs_rm {"path":"removed.txt"}`+"\n"+writeCall("between.txt", "2\n")+"\n"+writeCall("short.txt", "x")+"\n"+`CALL fs_rm {"path":"short.txt"}`+"\n"+writeCall("data.bin", "\x00\x01"))
	x.write("theirs.txt", "by an editor\n")
	turns, err := c.Turns(ctx)
	must(t, err)
	base := func(paths []string) string {
		var names []string
		for _, p := range paths {
			names = append(names, strings.TrimPrefix(p, x.real()+"/"))
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	if len(turns) != 3 || base(turns[1].Files) != "between.txt kept.txt sub/made.txt theirs.txt" || base(turns[2].Files) != "between.txt data.bin kept.txt removed.txt short.txt" || len(turns[2].Calls) != 8 || !turns[2].Calls[0].OK || !turns[2].Calls[0].Done {
		t.Errorf("turns %+v", turns)
	}
	preview, err := c.PreviewRewind(ctx, 2)
	must(t, err)
	check(t, "a preview changes nothing", x.read("kept.txt")+x.read("removed.txt"), "third\nnone")
	report, err := c.Rewind(ctx, 2, conversation.RewindFiles)
	must(t, err)
	if fmt.Sprint(preview) != fmt.Sprint(report) {
		t.Errorf("preview %+v, report %+v", preview, report)
	}
	check(t, "restored", base(report.Restored), "between.txt kept.txt removed.txt")
	check(t, "removed", base(report.Removed), "data.bin sub/made.txt")
	var skipped []string
	for _, s := range report.Skipped {
		skipped = append(skipped, base([]string{s.Path})+": "+s.Reason)
	}
	check(t, "skipped", strings.Join(skipped, "; "), "theirs.txt: it was changed outside of the conversation since; between.txt: it was changed outside of the conversation between two turns, and is as that change left it")
	check(t, "files", x.read("kept.txt")+x.read("removed.txt")+x.read("theirs.txt")+x.read("between.txt")+x.read("sub/made.txt")+x.read("data.bin"), "first\nold\nby an editor\nby hand\nnonenone")
	if info, err := os.Stat(filepath.Join(x.work, "kept.txt")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	check(t, "the conversation stays", fmt.Sprint(len(turns)), "3")
	again, err := c.Rewind(ctx, 2, conversation.RewindBoth) // as after a kill between the files and the conversation
	must(t, err)
	check(t, "again", base(again.Restored), "kept.txt removed.txt")
	check(t, "the conversation", prompts(t, c), "hello")
	if left, err := filepath.Glob(filepath.Join(x.work, "*.txt.*")); err != nil || left != nil {
		t.Errorf("files are left: %v %v", left, err)
	}
}

func (x *place) real() string {
	dir, err := filepath.EvalSymlinks(x.work)
	must(x.t, err)
	return dir
}

// A rewind writes nothing outside of the workspace, follows no link, and restores no secret.
func TestRewindIsSafe(t *testing.T) {
	x := newPlace(t)
	ctx := t.Context()
	outside := t.TempDir()
	elsewhere := filepath.Join(outside, "file.txt")
	must(t, os.WriteFile(elsewhere, []byte("theirs\n"), 0o600))
	x.env = append(x.env, "MY_API_KEY=hunter2-hunter2")
	x.write("secret.txt", "hunter2-hunter2\n")
	x.write("linked.txt", "one\n")
	x.write("dir/file.txt", "one\n")
	_, c := x.open("")
	x.say(c, readCall(elsewhere)+readCall("secret.txt")+readCall("linked.txt")+readCall("dir/file.txt")+writeCall(elsewhere, "mine\n")+"\n"+writeCall("secret.txt", "gone\n")+"\n"+writeCall("linked.txt", "two\n")+"\n"+writeCall("dir/file.txt", "two\n"))
	check(t, "the other directory", x.readAt(elsewhere), "mine\n")
	target := filepath.Join(outside, "target.txt")
	must(t, os.WriteFile(target, []byte("two\n"), 0o600))
	must(t, os.Remove(filepath.Join(x.work, "linked.txt")))
	must(t, os.Symlink(target, filepath.Join(x.work, "linked.txt")))
	must(t, os.RemoveAll(filepath.Join(x.work, "dir")))
	must(t, os.Symlink(outside, filepath.Join(x.work, "dir")))
	must(t, os.WriteFile(elsewhere, []byte("two\n"), 0o600))
	report, err := c.Rewind(ctx, 1, conversation.RewindFiles)
	must(t, err)
	if len(report.Restored)+len(report.Removed) != 0 || len(report.Skipped) != 4 {
		t.Errorf("report %+v", report)
	}
	check(t, "files", x.readAt(elsewhere)+x.readAt(target)+x.read("secret.txt"), "two\ntwo\ngone\n")
	t.Log(report.Skipped)
}

func (x *place) readAt(path string) string {
	text, err := os.ReadFile(path)
	must(x.t, err)
	return string(text)
}

// What the agent knows of files goes back with the conversation: a file that went back too can be changed at once, and one that did not must be read again.
func TestKnownFilesAfterRewind(t *testing.T) {
	x := newPlace(t)
	ctx := t.Context()
	x.write("a.txt", "first\n")
	_, c := x.open("")
	x.say(c, readCall("a.txt"))
	x.say(c, writeCall("a.txt", "second\n"))
	_, err := c.Rewind(ctx, 2, conversation.RewindBoth)
	must(t, err)
	check(t, "the file after the way back", x.read("a.txt"), "first\n")
	x.say(c, writeCall("a.txt", "third\n"))
	check(t, "the file that went back", x.read("a.txt"), "third\n")
	_, err = c.Rewind(ctx, 2, conversation.RewindConversation)
	must(t, err)
	x.say(c, writeCall("a.txt", "fourth\n"))
	check(t, "the file that did not", x.read("a.txt"), "third\n")
	x.say(c, readCall("a.txt")+writeCall("a.txt", "fifth\n"))
	check(t, "the file that was read again", x.read("a.txt"), "fifth\n")
	_, err = c.Rewind(ctx, 3, conversation.RewindFiles)
	must(t, err)
	x.say(c, writeCall("a.txt", "sixth\n"))
	check(t, "the file that went back alone", x.read("a.txt"), "third\n")
}
