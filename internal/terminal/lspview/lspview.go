// Package lspview is what editors and people get of the files of agents: raddle lsp, the language server on standard
// input and output, and raddle fmt, the layout of files.
package lspview

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/base/yamlformat"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
)

// ServerOptions are the flags of raddle lsp: it has none.
type ServerOptions struct{}

// DescribeServer returns the command that is the language server.
func DescribeServer() *cobra.Command {
	return &cobra.Command{
		Use:   "lsp",
		Short: "Help an editor with the files of agents, over stdin and stdout",
		Long: `Speaks the Language Server Protocol with the editor that starts it: what raddle check finds while you type, completion of keys,
nodes, keys of the state, tools, models and files, what is known about a place, definitions, references, renaming of
nodes and keys in all files of an agent, the outline, and raddle fmt. It runs no scripts, starts no servers and connects
to nothing. See: raddle help editors`,
		Example: `  raddle lsp    as the command of a language server in an editor`,
		Args:    cobra.NoArgs,
	}
}

// Run serves the editor until it ends.
func (ServerOptions) Run(ctx context.Context, con *console.Console, p *app.Process, _ []string) error {
	// What people see has no secrets; an edit of a text must have what the text has, so that nothing else is removed.
	con.Out.Clean = nil
	if err := Serve(ctx, p, con.In, con.Out); err != nil {
		if errors.Is(err, errNoShutdown) {
			return ending.ExitSilently(1) // as the protocol says
		}
		return err
	}
	return nil
}

// FormatOptions are the flags of raddle fmt.
type FormatOptions struct{ check bool }

// DescribeFormat returns the command that lays out files.
func DescribeFormat(opts *FormatOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fmt FILE|DIR...",
		Short: "Lay out YAML files of agents in one way",
		Long: `Indents by two spaces, lists below their key too, and leaves one space after a colon, one empty line where there are several,
and removes quotes around words that need none. Comments, the order of keys and all values stay: a file whose values would differ is
left as it is, and an error says so. Of a directory, it takes the .yaml files in it and below. The exit code is 3
if a file cannot be laid out, and with --check 1 if one would change.`,
		Example: `  raddle fmt review-gate
  raddle fmt --check review-gate`,
	}
	cmd.Flags().BoolVar(&opts.check, "check", false, "change nothing, and list the files that would change")
	return cmd
}

// Run lays out files, and prints which have changed.
func (o *FormatOptions) Run(_ context.Context, con *console.Console, p *app.Process, args []string) error {
	files, err := findFiles(p, args)
	if err != nil {
		return err
	}
	changed, failed := 0, 0
	for _, path := range files {
		is, err := o.formatFile(path)
		switch {
		case err != nil:
			failed++
			con.PrintNote("raddle: %s is left as it is: %v", p.Dirs.ShortPath(path), err)
		case is:
			changed++
			con.Out.PrintText(p.Dirs.ShortPath(path))
		}
	}
	switch {
	case failed > 0:
		return ending.ExitSilently(ending.Invalid)
	case changed > 0 && o.check:
		con.PrintNote("%s would change: raddle fmt without --check does it", wording.FormatCount(changed, "file"))
		return ending.ExitSilently(ending.Failed)
	}
	return nil
}

// formatFile lays out a file, unless it is only to be checked, and reports whether its text differs.
func (o *FormatOptions) formatFile(path string) (changed bool, err error) {
	text, err := plainfile.Read(path, strictyaml.MaxFileSize)
	if err != nil {
		return false, err
	}
	formatted, err := yamlformat.Format(text)
	if err != nil || bytes.Equal(text, formatted) || o.check {
		return !bytes.Equal(text, formatted), err
	}
	return true, replaceFile(path, formatted)
}

// replaceFile writes a file whole or not at all. A link stays one.
func replaceFile(path string, text []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".raddle-fmt-*")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Chmod(info.Mode().Perm()), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

// findFiles returns the files that arguments name: files, directories, and agents by their names.
func findFiles(p *app.Process, args []string) (files []string, err error) {
	for _, arg := range args {
		path := p.Dirs.AbsPath(arg)
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) && !app.IsPath(arg) {
			var place app.Place
			if place, err = p.FindAgent(arg); err == nil {
				path = place.Dir
				info, err = os.Stat(path)
			}
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, failure.NewUsage("name a file or a directory", "there is no file %s", arg)
		case err != nil:
			return nil, err
		case info.IsDir():
			files = append(files, listYAML(path)...)
		default:
			files = append(files, path)
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// listYAML returns the YAML files of a directory and of those below it, but not of hidden ones.
func listYAML(dir string) (files []string) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // a directory that cannot be read has no files
		case e.IsDir() && path != dir && (strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules"):
			return filepath.SkipDir
		case e.Type().IsRegular() && slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path)):
			files = append(files, path)
		}
		return nil
	})
	return files
}
