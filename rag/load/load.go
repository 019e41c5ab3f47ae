// Package load finds documents and reads their text: files, folders, patterns, pages of the web, git repositories, and
// everything that a command can convert to text.
//
//	entries, problems, err := load.List(ctx, []string{"docs/**/*.md", "https://example.com/manual/**"}, load.Options{Dir: dir})
//	for _, e := range entries {
//		file, err := e.Read(ctx)
//		…
//		doc, err := file.Text(ctx)
//	}
//
// Reading a document is cheap and returns a hash, which shows whether it has changed. Extracting its text may start
// programs. A failure never affects other documents: it is a [Problem] or an error of one [Entry].
package load

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The limits that apply if [Options] does not set them.
const (
	DefaultMaxBytes = 32 << 20
	DefaultMaxPages = 500
	DefaultTimeout  = 16 * time.Second
	// commandTimeout limits the time of a loader's command, and of git.
	commandTimeout = 5 * time.Minute
)

// Options say where documents are and how to read them. The zero value reads files below the working directory.
type Options struct {
	// Dir is the directory of relative paths; empty: the working directory.
	Dir string
	// Loaders are commands by file extension or protocol, such as "pdf": "pdftotext $1 -". $1 is the input. If the
	// command has $2, it must write a file at that path; otherwise its output counts. The keys "url" and
	// "recursive_url" are for pages and crawls.
	Loaders map[string]string
	// Env is the complete environment of commands, as "NAME=value".
	Env []string
	// Skip holds the cleaned paths of files that are never documents.
	Skip []string
	// MaxBytes is the most bytes of one document; zero: [DefaultMaxBytes].
	MaxBytes int64
	// MaxPages is the most pages of one crawl; zero: [DefaultMaxPages].
	MaxPages int
	// Timeout is for each page; zero: [DefaultTimeout].
	Timeout time.Duration
}

func (o Options) maxBytes() int64 {
	if o.MaxBytes > 0 {
		return o.MaxBytes
	}
	return DefaultMaxBytes
}

func (o Options) maxPages() int {
	if o.MaxPages > 0 {
		return o.MaxPages
	}
	return DefaultMaxPages
}

func (o Options) pageTimeout() time.Duration {
	if o.Timeout > 0 {
		return o.Timeout
	}
	return DefaultTimeout
}

// A Problem is a document, or a whole source, that could not be read.
type Problem struct {
	Source string // as the caller wrote it
	Path   string // of the document; empty: the whole source
	Err    error
}

// Error names the document and says what is wrong with it.
func (p Problem) Error() string {
	name := p.Path
	if name == "" {
		name = p.Source
	}
	return name + ": " + p.Err.Error()
}

// Unwrap returns the cause.
func (p Problem) Unwrap() error { return p.Err }

// ErrNoDocuments is the cause in the Problem of a source that holds no documents.
var ErrNoDocuments = errors.New("no documents found here")

// ErrStopped is the cause in the Problem of a source of which only a part was read because it reached a limit. Reading
// it again does not help.
var ErrStopped = errors.New("stopped")

// An Entry is a document that was found.
type Entry struct {
	Path   string // absolute, or a URL, or the name that a loader gave
	Source string // the source in which it was found

	ext      string
	local    bool // Path is a file
	metadata map[string]string
	data     []byte                                      // set if finding the document meant reading it
	fetch    func(ctx context.Context) (pageData, error) // else
	o        *Options
}

// A File holds the bytes of an Entry.
type File struct {
	Hash string // changes when the bytes, or the command that reads them, change

	entry   Entry
	data    []byte
	changed time.Time // zero: not known
}

// A Document is the text of a file.
type Document struct {
	Text     string
	Ext      string // decides how to cut it: an extension without its dot
	Warning  string // a warning about the quality of the text; empty: there is none
	Metadata map[string]string
	// Date is the date of the document; zero: not known. It is that of its metadata, of its front matter or of the head
	// of a message, else when its file was changed.
	Date time.Time
	// Lines says that the lines of Text are those of the file.
	Lines bool
	// Marks say where in the file parts of Text stand, in the order of Text; nil: nothing is known.
	Marks []Mark
}

// A Mark says where in its file the text from a byte on stands, up to the next mark. Fields that do not fit the kind of
// file are zero.
type Mark struct {
	At      int    // the byte of the text
	Page    int    // of a PDF, from one
	Sheet   string // of a workbook
	Row     int    // of a sheet or table, from one
	Message int    // of a mailbox, from one
}

// The limits of the marks of rows: if there are very many, only those that are so many bytes behind the last are kept.
const (
	manyMarks = 500_000
	markStep  = 64
)

// addRow adds the mark of a row.
func addRow(marks []Mark, m Mark) []Mark {
	if len(marks) >= manyMarks && m.At-marks[len(marks)-1].At < markStep {
		return marks
	}
	return append(marks, m)
}

// List finds the documents of all sources, each once, in the order of the sources and sorted within each. A source is a
// file, a folder, a pattern (dir/**/*.{md,txt}), a page (https://…), a crawl (https://…/**), a git repository
// (git:PATH, git@…, ssh://…, https://….git), or KEY:REST for the loader KEY. List returns an error if the sources
// themselves have mistakes, with all mistakes at once, or if ctx ends.
func List(ctx context.Context, sources []string, o Options) ([]Entry, []Problem, error) {
	l := lister{ctx: ctx, o: &o, seen: map[string]bool{}}
	if o.Dir == "" {
		o.Dir = "."
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("find documents: %w", err)
	}
	o.Dir = dir
	var mistakes []error
	var places []sourceSpec
	for _, s := range sources {
		p, err := o.parseSource(s)
		if err != nil {
			mistakes = append(mistakes, err)
		}
		places = append(places, p)
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, nil, err
	}
	for _, p := range places {
		l.listSource(p)
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
	}
	return l.entries, l.problems, nil
}

// A lister collects the documents and problems.
type lister struct {
	ctx      context.Context
	o        *Options
	seen     map[string]bool
	found    int // documents, also those that were found before
	entries  []Entry
	problems []Problem
}

func (l *lister) listSource(p sourceSpec) {
	found := l.found
	problems := len(l.problems)
	if leadsOut(p.root, p.at) {
		l.addProblem(p.source, "", linkOut(p.root))
		return
	}
	switch p.kind {
	case kindLocal:
		l.listLocal(p)
	case kindProtocol:
		l.listProtocol(p)
	case kindPage:
		l.listPage(p)
	case kindCrawl:
		l.crawlSite(p)
	case kindRepository, kindLocalRepository:
		l.listRepository(p)
	}
	if l.found == found && len(l.problems) == problems {
		l.addProblem(p.source, "", ErrNoDocuments)
	}
}

func (l *lister) addProblem(source, path string, err error) {
	l.problems = append(l.problems, Problem{Source: source, Path: path, Err: err})
}

// addEntry adds e unless its path is known.
func (l *lister) addEntry(e Entry) {
	l.found++
	if l.seen[e.Path] {
		return
	}
	l.seen[e.Path] = true
	e.o = l.o
	l.entries = append(l.entries, e)
}

// versions are added to the hashes of files, by extension: a change of one makes the next build read these files again.
var versions = map[string]string{
	"pdf":   pdfReader,
	"xlsx":  sheetVersion,
	"html":  pageReader,
	"htm":   pageReader,
	"xhtml": pageReader,
	"csv":   tableReader,
	"ipynb": notebookReader,
	"eml":   mailReader,
	"mbox":  boxReader,
}

// Read returns the bytes of the document. It may block on a network.
func (e Entry) Read(ctx context.Context) (*File, error) {
	var changed time.Time
	if e.fetch != nil {
		got, err := e.fetch(ctx)
		if err != nil {
			return nil, err
		}
		e.data = got.data
		changed = got.changed
		e.ext = got.ext
	}
	h := sha256.New()
	h.Write(e.data)
	if command := e.o.Loaders[e.ext]; command != "" {
		h.Write([]byte("\x00" + command))
	} else {
		h.Write([]byte(versions[e.ext]))
	}
	return &File{Hash: hex.EncodeToString(h.Sum(nil)), entry: e, data: e.data, changed: changed}, nil
}

// A sourceSpec is a source after parsing.
type sourceSpec struct {
	source string
	kind   sourceKind
	loader string // the protocol's key
	at     string // a path, a pattern, a URL without its stars, or the argument of the protocol
	root   string // the directory that a path must not leave, also through links; empty: a person wrote the whole path
}

type sourceKind int

const (
	kindLocal sourceKind = iota
	kindProtocol
	kindPage
	kindCrawl
	kindRepository
	kindLocalRepository
)

// parseSource decides the kind of a source.
func (o *Options) parseSource(source string) (sourceSpec, error) {
	if isRepository(source) {
		return sourceSpec{source: source, kind: kindRepository, at: source}, nil
	}
	if strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://") {
		if at, ok := strings.CutSuffix(source, "**"); ok {
			return sourceSpec{source: source, kind: kindCrawl, at: at}, nil
		}
		return sourceSpec{source: source, kind: kindPage, at: source}, nil
	}
	if path, ok := strings.CutPrefix(source, "git:"); ok {
		p := sourceSpec{source: source, kind: kindLocalRepository}
		return p, o.resolvePath(&p, path)
	}
	if key, rest, ok := strings.Cut(source, ":"); ok && o.Loaders[key] != "" {
		p := sourceSpec{source: source, kind: kindProtocol, loader: key}
		return p, o.resolvePath(&p, rest)
	}
	p := sourceSpec{source: source, kind: kindLocal}
	return p, o.resolvePath(&p, source)
}

// resolvePath sets the path of a source in the file system. A relative path must not lead out of the directory.
func (o *Options) resolvePath(p *sourceSpec, path string) error {
	switch fault := FindPathFault(path); {
	case path == "" || fault != "":
		return failf("Invalid document path: '%s' (%s)", p.source, cmp.Or(fault, "it is empty: name a file, a folder or a pattern"))
	case strings.HasPrefix(path, "~/"):
		home, err := homeDir(o.Env)
		if err != nil {
			return fmt.Errorf("document path '%s': %w", p.source, err)
		}
		p.at = filepath.Join(home, path[2:])
	case filepath.IsAbs(path):
		p.at = filepath.Clean(path)
	default:
		p.at = filepath.Join(o.Dir, path)
		p.root = o.Dir
	}
	return nil
}

// FindPathFault returns the rule that a path of a document breaks, with what to write instead; "" if it breaks none.
func FindPathFault(path string) string {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == filepath.Separator })
	if !strings.HasPrefix(path, "~/") && !filepath.IsAbs(path) && slices.Contains(parts, "..") {
		return "a relative path begins at the agent's directory and must not contain `..`: put the documents there, or write the absolute path"
	}
	return ""
}
