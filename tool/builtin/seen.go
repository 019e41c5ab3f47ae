package builtin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"raddle.dev/internal/base/edit"
	"raddle.dev/tool"
)

// newSeen returns a file as it is known to a call that has read or written its whole text. stamp is from stampFile,
// from before the text was read.
func newSeen(path, text, stamp string) tool.SeenFile {
	f := tool.SeenFile{Path: realPath(path), Hash: hashText(text), Stamp: stamp}
	if strings.IndexByte(text, 0) < 0 {
		f.Lines = edit.SumLines(text)
	}
	if len(text) <= tool.MaxImage {
		f.Text = text
	}
	return f
}

func hashText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// stampFile returns what tells, without the content, whether a file has changed.
func stampFile(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
}

// An unseenError says that a call changes nothing because the conversation does not know a file as it is.
type unseenError struct {
	text  string          // sentences
	shown []tool.SeenFile // files of which the text shows all that the conversation does not know
}

func (e *unseenError) Error() string { return e.text }

// joinError returns an error with the sentences and files of both.
func (e *unseenError) joinError(more *unseenError) *unseenError {
	if e == nil {
		return more
	}
	return &unseenError{text: e.text + "\n" + more.text, shown: append(e.shown, more.shown...)}
}

// failWith returns the result of a call that failed, with its error after the head. An unseenError needs no head.
func failWith(head string, err error) (tool.Result, error) {
	if unseen, ok := errors.AsType[*unseenError](err); ok {
		r := tool.FailedResult("The call changed nothing. %s", unseen.text)
		r.Seen = unseen.shown
		return r, nil
	}
	return tool.FailedResult("%s%v", head, err), nil
}

// A replacement says what a call does with the content of a file.
type replacement int

const (
	byParts  replacement = iota // it names what it replaces
	asAWhole                    // it replaces or removes all of it, whatever it is
)

// checkSeen returns an *unseenError if the conversation that makes the call has not read a file with this content. An
// empty file has nothing to lose. name is that of the file as the model writes it.
func (h Host) checkSeen(name, path, content string, how replacement) error {
	if h.seen == nil || content == "" {
		return nil
	}
	known := h.seen(realPath(path))
	if known == nil {
		return &unseenError{text: fmt.Sprintf("You have not read %s: read it first, with fs_read or fs_cat, then repeat the call.", name)}
	}
	if h.isKnown(known, path, content) {
		return nil
	}
	text := name + " has changed since you read it"
	all := false
	if known.Lines != "" && edit.SumLines(content) != "" && !h.hidesContent(realPath(path)) {
		count, now := compareSums(known.Lines, content)
		switch {
		case count == 0:
			text = text + ": only line ends or other marks that are not shown"
			all = true
		default:
			text = fmt.Sprintf("%s: %s. It has now:\n%s", text, describeCount(count), now.Lines())
			all = now.ShowsAll()
		}
	}
	text = strings.TrimRight(text, "\n.")
	if strings.Contains(text, "\n") {
		text += "\n"
	} else {
		text += ". "
	}
	if !all || how == asAWhole {
		return &unseenError{text: text + "Read it again, then repeat the call with what is right now."}
	}
	return &unseenError{
		text:  text + "Repeat the call if it is still right.",
		shown: []tool.SeenFile{newSeen(path, content, stampFile(path))},
	}
}

func describeCount(count int) string {
	if count == 1 {
		return "1 line differs"
	}
	return fmt.Sprintf("%d lines differ", count)
}

// compareSums returns how many lines of a file differ from those of which sums are known; the result shows them as they
// are now. Lines that were removed are shown by those around them.
func compareSums(sums, file string) (count int, now edit.Result) {
	before := edit.SplitSums(sums)
	after := edit.SplitSums(edit.SumLines(file))
	var where []edit.Region
	shift := 0
	for _, e := range udiff.Lines(before, after) {
		removed := strings.Count(before[e.Start:e.End], "\n")
		added := strings.Count(e.New, "\n")
		from := strings.Count(before[:e.Start], "\n") + shift
		where = append(where, edit.Region{From: from, To: from + added})
		count += max(removed, added)
		shift += added - removed
	}
	return count, edit.ShowRegions(file, where)
}

// isKnown reports whether a file with a content is as the conversation has seen it.
func (h Host) isKnown(known *tool.SeenFile, path, content string) bool {
	if known.Hash == "" {
		return known.Stamp != "" && known.Stamp == stampFile(path)
	}
	return known.Hash == hashText(content)
}

// wasDone reports whether an earlier try of a call, which was interrupted, has made the change that leads to a content:
// undo finds the content before it.
func (h Host) wasDone(path, content string, undo func(was func(before string) bool) bool) bool {
	if !h.repeat || h.seen == nil {
		return false
	}
	known := h.seen(realPath(path))
	if known == nil || known.Hash == "" || known.Hash == hashText(content) {
		return false
	}
	return undo(func(before string) bool { return hashText(before) == known.Hash })
}

// errBusy says that another program changes a file at the same time as a call.
var errBusy = errors.New("was changed by another program at this moment: read it again, then repeat the call")

// expectFile returns an error unless a file has a content; nil: there is no file.
func expectFile(path string, content *string) error {
	text, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && content == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return errBusy
	case err != nil:
		return err
	case content == nil || *content != string(text):
		return errBusy
	}
	return nil
}
