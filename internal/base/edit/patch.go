package edit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"raddle.dev/internal/base/pattern"
)

// An Operation is what a patch does with a file.
type Operation int

const (
	Update Operation = iota // change, and move if there is another path
	Add                     // a file that does not exist
	Delete
)

// A File is what a patch does with one file.
type File struct {
	Path   string // as the patch names it, without a/ and b/ of git; "": it names none
	MoveTo string // "": it stays
	Do     Operation
	Text   string  // of Add
	Hunks  []*Hunk // of Update, and of Delete if the patch shows what it removes
}

// Parse reads a patch in one of the forms that models write: a unified diff, the envelope "*** Begin Patch" of OpenAI's
// models, or blocks of SEARCH and REPLACE; in a fence of Markdown or bare. The error says what is wrong and in which
// line.
func Parse(patch string) ([]File, error) {
	p := &parser{lines: splitText(strings.TrimPrefix(patch, byteOrderMark)).lines}
	p.cutFence()
	var err error
	switch {
	case p.has("*** Begin Patch"), p.has("*** Update File:"), p.has("*** Add File:"), p.has("*** Delete File:"):
		err = p.readEnvelope()
	case p.hasSearch():
		err = p.readBlocks()
	default:
		err = p.readDiff()
	}
	if err != nil {
		return nil, err
	}
	return p.files, p.check()
}

// A parser reads one patch.
type parser struct {
	lines []string
	first int // lines of the patch before lines
	files []File
}

func (p *parser) has(prefix string) bool {
	for _, l := range p.lines {
		if strings.HasPrefix(strings.TrimSpace(l), prefix) {
			return true
		}
	}
	return false
}

// cutFence removes a fence of Markdown around the patch, and what stands before and behind it.
func (p *parser) cutFence() {
	for i, l := range p.lines {
		fence := strings.TrimSpace(l)
		if strings.HasPrefix(fence, "@@") || strings.HasPrefix(fence, "*** ") || searchHead().MatchString(l) {
			return // a fence in it is part of the text
		}
		if !strings.HasPrefix(fence, "```") && !strings.HasPrefix(fence, "~~~") {
			continue
		}
		mark := fence[:3]
		for j := len(p.lines) - 1; j > i; j-- {
			if strings.TrimSpace(p.lines[j]) == mark {
				p.lines = p.lines[i+1 : j]
				p.first = p.first + i + 1
				return
			}
		}
		return
	}
}

// file adds a file to the patch and returns it.
func (p *parser) file(f File) *File {
	p.files = append(p.files, f)
	return &p.files[len(p.files)-1]
}

// current returns the last file, which it adds if there is none.
func (p *parser) current() *File {
	if len(p.files) == 0 {
		return p.file(File{})
	}
	return &p.files[len(p.files)-1]
}

var hunkHead = pattern.CompileLater(`^@@+ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)?(?: @@|\s*$)`)

// readDiff reads a unified diff. What stands before the first file or hunk is skipped.
func (p *parser) readDiff() error {
	begun := false // a hunk
	for i := 0; i < len(p.lines); i++ {
		l := p.lines[i]
		switch {
		case strings.HasPrefix(l, "@@"):
			h, more := p.readHead(i)
			p.current().addHunk(h)
			begun = true
			i += more
		case p.isFileHead(i):
			p.readFileHead(i)
			begun = false
			i++
		case !begun || isGitLine(l) && p.fileFollows(i):
			continue
		default:
			hunks := p.current().Hunks
			if err := hunks[len(hunks)-1].addLine(l, p.first+i+1); err != nil {
				return err
			}
		}
	}
	if len(p.files) == 0 {
		return errors.New("no patch: there is no line that begins with @@")
	}
	return nil
}

// addHunk adds a hunk. One before it that has a head and no lines is a part of its head.
func (f *File) addHunk(h *Hunk) {
	if n := len(f.Hunks); n > 0 && len(f.Hunks[n-1].lines) == 0 {
		head := f.Hunks[n-1]
		f.Hunks = f.Hunks[:n-1]
		h.anchors = append(head.anchors, h.anchors...)
		if h.number == 0 && !h.top {
			h.number = head.number
			h.top = head.top
		}
	}
	f.Hunks = append(f.Hunks, h)
}

// readHead reads the head of a hunk, and the headings in the lines that follow it directly.
func (p *parser) readHead(i int) (h *Hunk, more int) {
	h = &Hunk{at: p.first + i + 1}
	if m := hunkHead().FindStringSubmatch(p.lines[i]); m != nil {
		h.number, _ = strconv.Atoi(m[1])
		h.top = h.number == 0
		return h, 0
	}
	for ; i < len(p.lines) && strings.HasPrefix(p.lines[i], "@@"); i, more = i+1, more+1 {
		if more > 0 && (hunkHead().MatchString(p.lines[i]) || strings.Trim(p.lines[i], "@ ") == "") {
			break // the next hunk
		}
		h.addAnchor(p.lines[i])
	}
	return h, more - 1
}

// addAnchor takes the heading of a line that begins with @@. Dots, which some models write for the numbers, are none.
func (h *Hunk) addAnchor(l string) {
	anchor := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(strings.TrimLeft(l, "@")), "@@"))
	if strings.Trim(anchor, ".…, +-") != "" {
		h.anchors = append(h.anchors, anchor)
	}
}

// isFileHead reports whether the names of a file begin in line i.
func (p *parser) isFileHead(i int) bool {
	return strings.HasPrefix(p.lines[i], "--- ") && i+1 < len(p.lines) && strings.HasPrefix(p.lines[i+1], "+++ ") &&
		(i+2 >= len(p.lines) || strings.HasPrefix(p.lines[i+2], "@@") || strings.TrimSpace(p.lines[i+2]) == "" || isGitLine(p.lines[i+2]))
}

// isGitLine reports whether a line is one that git writes between files.
func isGitLine(l string) bool {
	for _, head := range []string{"diff --git ", "index ", "new file mode ", "deleted file mode ", "old mode ", "new mode ", "similarity index ", "rename from ", "rename to "} {
		if strings.HasPrefix(l, head) {
			return true
		}
	}
	return false
}

// fileFollows reports whether only lines of git stand between line i and the names of the next file or the end.
func (p *parser) fileFollows(i int) bool {
	for ; i < len(p.lines); i++ {
		if p.isFileHead(i) {
			return true
		}
		if !isGitLine(p.lines[i]) && strings.TrimSpace(p.lines[i]) != "" {
			return false
		}
	}
	return true
}

func (p *parser) readFileHead(i int) {
	old := diffName(p.lines[i][4:])
	now := diffName(p.lines[i+1][4:])
	switch {
	case old == devNull && now == devNull, now == "":
		p.file(File{})
	case old == devNull:
		p.file(File{Path: now, Do: Add})
	case now == devNull:
		p.file(File{Path: old, Do: Delete})
	case old != "" && old != now:
		p.file(File{Path: old, MoveTo: now})
	default:
		p.file(File{Path: now})
	}
}

const devNull = "/dev/null"

// diffName returns the name of a file in a diff, without its time and without a/ and b/ of git.
func diffName(text string) string {
	name, _, _ := strings.Cut(text, "\t")
	name = strings.TrimSpace(name)
	if unquoted, err := strconv.Unquote(name); err == nil {
		name = unquoted
	}
	if rest, ok := strings.CutPrefix(name, "a/"); ok {
		return rest
	}
	return strings.TrimPrefix(name, "b/")
}

// addLine takes one line of the patch.
func (h *Hunk) addLine(l string, at int) error {
	if l == "" { // an empty line whose blank was lost
		h.lines = append(h.lines, line{' ', ""})
		return nil
	}
	switch l[0] {
	case ' ', '-', '+':
		h.lines = append(h.lines, line{l[0], l[1:]})
	case '\\': // "\ No newline at end of file", about the line before
		if len(h.lines) == 0 {
			return nil
		}
		switch h.lines[len(h.lines)-1].op {
		case '-':
			h.oldOpen = true
		case '+':
			h.newOpen = true
		default:
			h.oldOpen = true
			h.newOpen = true
		}
	default:
		return fmt.Errorf("line %d of the patch begins with neither a space, - nor +: %.60q", at, l)
	}
	return nil
}

// readEnvelope reads the form of OpenAI's models.
func (p *parser) readEnvelope() error {
	var h *Hunk
	begun := false
	for i, l := range p.lines {
		at := p.first + i + 1
		name, value, _ := strings.Cut(strings.TrimSpace(l), ":")
		value = strings.TrimSpace(value)
		var f *File
		if len(p.files) > 0 {
			f = p.current()
		}
		switch {
		case name == "*** Begin Patch" || name == "*** End Patch":
			h = nil
			begun = false // what follows the end is no part of the patch
			continue
		case name == "*** Update File" || name == "*** Add File" || name == "*** Delete File":
			if value == "" {
				return fmt.Errorf("line %d of the patch names no file", at)
			}
			p.file(File{Path: value, Do: map[string]Operation{"*** Add File": Add, "*** Delete File": Delete}[name]})
			h = nil
			begun = true
		case !begun:
			continue
		case name == "*** Move to" && f.Do == Update && len(f.Hunks) == 0:
			f.MoveTo = value
		case name == "*** End of File":
			if h == nil {
				return fmt.Errorf("line %d of the patch: there is no change before the end of the file", at)
			}
			h.atEnd = true
		case f.Do == Add:
			text, ok := strings.CutPrefix(l, "+")
			if !ok && l != "" {
				return fmt.Errorf("line %d of the patch: the lines of a new file begin with +: %.60q", at, l)
			}
			if ok {
				f.Text += text + "\n"
			}
		case f.Do == Delete && strings.TrimSpace(l) == "":
			continue
		case f.Do == Delete:
			return fmt.Errorf("line %d of the patch: nothing follows the name of a file that is deleted: %.60q", at, l)
		case strings.HasPrefix(l, "@@"):
			if h == nil || len(h.lines) > 0 {
				h = &Hunk{at: at}
				f.Hunks = append(f.Hunks, h)
			}
			if m := hunkHead().FindStringSubmatch(l); m != nil {
				h.number, _ = strconv.Atoi(m[1])
				h.top = h.number == 0
			} else {
				h.addAnchor(l)
			}
		default:
			if h == nil || h.atEnd {
				if l == "" {
					continue
				}
				h = &Hunk{at: at}
				f.Hunks = append(f.Hunks, h)
			}
			if err := h.addLine(l, at); err != nil {
				return err
			}
		}
	}
	if len(p.files) == 0 {
		return errors.New("no patch: *** Begin Patch is not followed by *** Update File, *** Add File or *** Delete File")
	}
	return nil
}

// The lines of a block, in the spellings of the programs that ask models for blocks.
var (
	searchHead  = pattern.CompileLater(`^\s*(<{5,9}|-{7}) ?SEARCH>?\s*$`)
	searchMid   = pattern.CompileLater(`^\s*(={5,9})\s*$`)
	replaceTail = pattern.CompileLater(`^\s*(>{5,9}|\+{7}) ?REPLACE\s*$`)
	startLine   = pattern.CompileLater(`^:(start|end)_line: ?(\d+)\s*$`)
)

func (p *parser) hasSearch() bool {
	for _, l := range p.lines {
		if searchHead().MatchString(l) {
			return true
		}
	}
	return false
}

// readBlocks reads blocks of SEARCH and REPLACE. The name of a file may stand in the line above a block, or above its fence.
func (p *parser) readBlocks() error {
	for i := 0; i < len(p.lines); i++ {
		if !searchHead().MatchString(p.lines[i]) {
			continue
		}
		at := p.first + i + 1
		if name := p.nameAbove(i); name != "" && name != p.current().Path {
			if p.current().Path == "" && len(p.current().Hunks) == 0 {
				p.current().Path = name
			} else {
				p.file(File{Path: name})
			}
		}
		h := &Hunk{at: at, name: fmt.Sprintf("the block in line %d of the patch", at)}
		old, now, end, err := p.cutBlock(i)
		if err != nil {
			return fmt.Errorf("%s %w", h.name, err)
		}
		h.lines = diffLines(h.cutLineNumbers(old), now)
		f := p.current()
		f.Hunks = append(f.Hunks, h)
		i = end
	}
	return nil
}

// cutBlock returns the lines of the block whose head is in line i, and the line of its end. The line between the two parts has as many signs as the
// head; only if there is none, another number counts.
func (p *parser) cutBlock(i int) (old, now []string, end int, err error) {
	signs := len(strings.TrimSpace(searchHead().FindStringSubmatch(p.lines[i])[1]))
	var same, other []int
	for end = i + 1; end < len(p.lines) && !replaceTail().MatchString(p.lines[end]); end++ {
		m := searchMid().FindStringSubmatch(p.lines[end])
		switch {
		case searchHead().MatchString(p.lines[end]):
			return nil, nil, 0, fmt.Errorf("has no end: another SEARCH begins in line %d, before >>>>>>> REPLACE", p.first+end+1)
		case m == nil:
		case len(m[1]) == signs:
			same = append(same, end)
		default:
			other = append(other, end)
		}
	}
	if len(same) == 0 {
		same = other
	}
	switch {
	case end >= len(p.lines) || len(same) == 0:
		return nil, nil, 0, errors.New("has no end: after SEARCH come =======, the new lines and >>>>>>> REPLACE")
	case len(same) > 1:
		return nil, nil, 0, fmt.Errorf("has several lines that may divide it (=======), in the lines %s of the patch: write the change as a diff", listNumbers(same, p.first+1))
	}
	return p.lines[i+1 : same[0]], p.lines[same[0]+1 : end], end, nil
}

func listNumbers(list []int, plus int) string {
	var all []string
	for _, n := range list {
		all = append(all, strconv.Itoa(n+plus))
	}
	return strings.Join(all, ", ")
}

// cutLineNumbers takes the lines that say where the old lines stand off them: ":start_line:12", and a line of dashes behind.
func (h *Hunk) cutLineNumbers(old []string) []string {
	rest := old
	for len(rest) > 0 {
		m := startLine().FindStringSubmatch(rest[0])
		if m == nil {
			break
		}
		if m[1] == "start" {
			h.number, _ = strconv.Atoi(m[2])
		}
		rest = rest[1:]
	}
	if len(rest) < len(old) && len(rest) > 0 && strings.Trim(rest[0], "-") == "" && rest[0] != "" {
		rest = rest[1:]
	}
	return rest
}

// nameAbove returns the name of a file above a block, "" if there is none.
func (p *parser) nameAbove(i int) string {
	for i--; i >= 0; i-- {
		l := strings.TrimSpace(p.lines[i])
		switch {
		case strings.HasPrefix(l, "```"):
			continue
		case l == "" || replaceTail().MatchString(l) || strings.ContainsAny(l, " \t"):
			return ""
		}
		return strings.Trim(l, "`*:")
	}
	return ""
}

// diffLines returns old and new lines as the lines of a hunk: those at the beginning and at the end that are the same stay.
func diffLines(old, now []string) (lines []line) {
	same := 0
	for same < len(old) && same < len(now) && old[same] == now[same] {
		same++
	}
	tail := 0
	for tail < len(old)-same && tail < len(now)-same && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	add := func(op byte, list []string) {
		for _, l := range list {
			lines = append(lines, line{op, l})
		}
	}
	add(' ', old[:same])
	add('-', old[same:len(old)-tail])
	add('+', now[same:len(now)-tail])
	add(' ', old[len(old)-tail:])
	return lines
}

// check returns an error if a part of the patch says nothing.
func (p *parser) check() error {
	for i := range p.files {
		f := &p.files[i]
		if f.Do == Add && len(f.Hunks) > 0 {
			if err := f.readNewText(); err != nil {
				return err
			}
		}
		for j, h := range f.Hunks {
			switch {
			case len(h.lines) == 0:
				return fmt.Errorf("the hunk in line %d of the patch has no lines", h.at)
			case !h.changes():
				return fmt.Errorf("%s changes nothing: it has no line with - or +", h.describe(j))
			}
			h.trimTail()
		}
		if f.Do == Update && len(f.Hunks) == 0 && f.MoveTo == "" {
			return fmt.Errorf("the patch has no change of %s", f.Path)
		}
	}
	return nil
}

// readNewText takes the text of a new file from its hunks.
func (f *File) readNewText() error {
	for _, h := range f.Hunks {
		for _, l := range h.lines {
			if l.op != '+' && l.text != "" {
				return fmt.Errorf("the patch makes %s, and its hunk in line %d has a line that is not new: %.60q", f.Path, h.at, l.text)
			}
			if l.op == '+' {
				f.Text += l.text + "\n"
			}
		}
		if h.newOpen {
			f.Text = strings.TrimSuffix(f.Text, "\n")
		}
	}
	f.Hunks = nil
	return nil
}

// trimTail removes empty lines at the end of a hunk that the patch has for its looks, if there is something else: "" at the end of a diff.
func (h *Hunk) trimTail() {
	for len(h.lines) > 1 && h.lines[len(h.lines)-1] == (line{' ', ""}) {
		if !h.blankTail() {
			return
		}
		h.lines = h.lines[:len(h.lines)-1]
	}
}

// blankTail reports whether the last line may be left out: a hunk without it still has lines that say where it is.
func (h *Hunk) blankTail() bool {
	for _, l := range h.lines[:len(h.lines)-1] {
		if l.op != '+' {
			return true
		}
	}
	return false
}
