package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/shell"

	"raddle.dev/internal/base/proc"
	"raddle.dev/internal/base/tempdir"
)

// runLoader runs a loader's command on input and returns its output.
func (o *Options) runLoader(ctx context.Context, command, input string) ([]byte, error) {
	words, err := shell.Fields(quoteInputs(command), func(string) string { return "" })
	if err != nil || len(words) == 0 {
		return nil, fmt.Errorf("the loader's command %q cannot be read: quote it as for a shell", command)
	}
	temp, remove, err := tempdir.New("load-*")
	if err != nil {
		return nil, err
	}
	defer remove()
	output := filepath.Join(temp, "output")
	toFile := false
	for i, w := range words {
		toFile = toFile || strings.Contains(w, outputMark)
		words[i] = strings.NewReplacer(inputMark, input, outputMark, output).Replace(w)
	}
	most := o.maxBytes()
	c := proc.Command{Path: words[0], Args: words[1:], Dir: o.Dir, Env: o.Env, Timeout: commandTimeout, Limit: int(most)}
	res, err := proc.Run(ctx, c)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("the loader %s failed: %w", words[0], err)
	}
	if toFile {
		data, err := readFile("", output, most)
		if errors.Is(err, os.ErrNotExist) {
			err = errors.New("it wrote no file at $2")
		}
		if err != nil {
			return nil, fmt.Errorf("the loader %s failed: %w", words[0], err)
		}
		return data, nil
	}
	if res.StdoutDropped > 0 {
		return nil, tooLarge(most+res.StdoutDropped, most)
	}
	return res.Stdout, nil
}

// The marks replace $1 and $2 while the command is divided into words, so that a path stays one word, whatever
// characters it has.
const (
	inputMark  = "\x01input\x01"
	outputMark = "\x01output\x01"
)

func quoteInputs(command string) string {
	return strings.NewReplacer("${1}", inputMark, "${2}", outputMark, "$1", inputMark, "$2", outputMark).Replace(command)
}

// convertFile runs the loader of an extension on a file. If there is no file, it writes one first.
func (f *File) convertFile(ctx context.Context, command string) ([]byte, error) {
	o := f.entry.o
	if f.entry.local {
		return o.runLoader(ctx, command, f.entry.Path)
	}
	temp, remove, err := tempdir.New("load-*")
	if err != nil {
		return nil, err
	}
	defer remove()
	path := filepath.Join(temp, "document."+f.entry.ext)
	if err := os.WriteFile(path, f.data, 0o600); err != nil {
		return nil, err
	}
	return o.runLoader(ctx, command, path)
}

// listProtocol lists the documents that a loader returns for the rest of a source: one text, or a JSON list of texts.
func (l *lister) listProtocol(p sourceSpec) {
	l.listLoaderOutput(l.o.Loaders[p.loader], p)
}

// listLoaderOutput lists the documents that a command returns for a source.
func (l *lister) listLoaderOutput(command string, p sourceSpec) {
	out, err := l.o.runLoader(l.ctx, command, p.at)
	if err != nil {
		l.addProblem(p.source, "", err)
		return
	}
	l.addLoaderOutput(p, out)
}

// addLoaderOutput adds the documents that a command has printed for a source.
func (l *lister) addLoaderOutput(p sourceSpec, out []byte) {
	var list []struct {
		Path     string         `json:"path"`
		Contents string         `json:"contents"`
		Text     string         `json:"text"`
		Metadata map[string]any `json:"metadata"`
	}
	if json.Unmarshal(out, &list) != nil || len(list) == 0 {
		l.addEntry(Entry{Path: p.source, Source: p.source, data: out})
		return
	}
	for i, d := range list {
		if d.Path == "" {
			d.Path = fmt.Sprintf("%s#%d", p.source, i+1)
		}
		metadata := map[string]string{}
		for k, v := range d.Metadata {
			metadata[k] = fmt.Sprint(v)
		}
		l.addEntry(Entry{Path: d.Path, Source: p.source, data: []byte(d.Contents + d.Text), metadata: metadata})
	}
}
