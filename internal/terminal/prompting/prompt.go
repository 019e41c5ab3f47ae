package prompting

import (
	"context"
	"slices"
	"strings"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/gather"
	"raddle.dev/internal/storage/attach"
)

// Parts are what a command line says about its prompt.
type Parts struct {
	Words   []string // "-" asks for standard input
	Files   []string // names of files, directories, patterns and addresses
	NoInput bool     // standard input is not read
}

// A Prompt is a prompt with its files, in their order.
type Prompt struct {
	Text  string
	Files []attach.File
	Notes []string // lines that say what was added to the words
}

// ReadPrompt makes the prompt of a command line: the words, then what standard input has, then the files. Standard input
// alone is the text. Next to words or files it has a heading, and a note says that it was added. The error says what
// cannot be read.
func ReadPrompt(ctx context.Context, in *Input, parts Parts) (p Prompt, err error) {
	words := slices.DeleteFunc(slices.Clone(parts.Words), func(w string) bool { return w == "-" })
	asked := len(words) < len(parts.Words)
	if asked && parts.NoInput {
		return p, failure.NewUsage("leave one of them out", `the prompt "-" is standard input, and --no-stdin forbids reading it`)
	}
	p.Text = strings.Join(words, " ")
	if !parts.NoInput {
		read := in.ReadSoon
		if asked {
			read = in.ReadAll
		}
		f, ok, err := read()
		if err != nil {
			return p, err
		}
		if ok {
			p.addInput(f)
		}
	}
	files, notes, err := gather.Read(ctx, parts.Files)
	p.Files = append(p.Files, files...)
	p.Notes = append(p.Notes, notes...)
	return p, err
}

// addInput adds what standard input has.
func (p *Prompt) addInput(f attach.File) {
	switch {
	case f.Media != nil:
		p.Files = append(p.Files, f)
		p.Notes = append(p.Notes, attach.Mark+f.String())
	case p.Text == "":
		p.Text = strings.TrimRight(f.Text, "\r\n")
	default:
		p.Files = append(p.Files, f)
		lines := strings.Count(strings.TrimRight(f.Text, "\r\n"), "\n") + 1
		p.Notes = append(p.Notes, "+ "+wording.FormatCount(lines, "line")+" from standard input")
	}
}
