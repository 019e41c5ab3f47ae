package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/encoding/htmlindex"
)

const (
	pagesAtOnce = 5
	maxRedirect = 5
	crawlTime   = 10 * time.Minute // of one crawl
)

// pageData is the data of a page, with its type.
type pageData struct {
	data []byte
	ext  string
	at   *url.URL // the address after all redirections; nil: not from the web

	changed time.Time // of a file on disk; zero: not known
}

// listPage lists one page.
func (l *lister) listPage(p sourceSpec) {
	if command := l.o.Loaders["url"]; command != "" {
		l.listLoaderOutput(command, p)
		return
	}
	o := l.o
	l.addEntry(Entry{Path: p.at, Source: p.source, fetch: func(ctx context.Context) (pageData, error) {
		return o.fetchPage(ctx, p.at, func(*url.URL) bool { return true })
	}})
}

// crawlSite lists a page and all pages below its folder to which its links lead.
func (l *lister) crawlSite(p sourceSpec) {
	if command := l.o.Loaders["recursive_url"]; command != "" {
		l.listLoaderOutput(command, p)
		return
	}
	start, err := url.Parse(p.at)
	if err != nil || start.Host == "" {
		l.addProblem(p.source, "", errors.New("not an address"))
		return
	}
	ctx, cancel := context.WithTimeout(l.ctx, crawlTime)
	defer cancel()
	c := crawler{o: l.o, start: start, seen: map[string]bool{start.String(): true}}
	level := []*url.URL{start}
	for len(level) > 0 && ctx.Err() == nil {
		if room := l.o.maxPages() - c.pages; len(level) > room {
			l.addProblem(p.source, "", fmt.Errorf("%w after %d pages, there are more: name a narrower address", ErrStopped, l.o.maxPages()))
			level = level[:room]
		}
		level = c.fetchLevel(ctx, level, func(at string, got pageData, err error) {
			if err != nil {
				l.addProblem(p.source, at, err)
				return
			}
			l.addEntry(Entry{Path: at, Source: p.source, ext: got.ext, data: got.data})
		})
	}
	if ctx.Err() != nil && l.ctx.Err() == nil {
		l.addProblem(p.source, "", fmt.Errorf("%w after %s, there may be more: name a narrower address", ErrStopped, crawlTime))
	}
}

// IsPageOf reports whether a path is the address of one page of a crawl, which can be read without the others. The page
// with which the crawl begins is none: its links lead to the others.
func (o Options) IsPageOf(source, path string) bool {
	start, crawl := strings.CutSuffix(source, "**")
	isAddress := func(text string) bool {
		return strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://")
	}
	return crawl && isAddress(start) && isAddress(path) && path != start && !isRepository(path) && !strings.HasSuffix(path, "**") && o.Loaders["url"] == "" && o.Loaders["recursive_url"] == ""
}

// A crawler holds the state of one crawl.
type crawler struct {
	o     *Options
	start *url.URL
	seen  map[string]bool
	pages int
}

// isInside reports whether u belongs to the crawl: it has the same host, and is not above the start.
func (c *crawler) isInside(u *url.URL) bool {
	top := c.start.EscapedPath()
	top = top[:strings.LastIndex(top, "/")+1]
	return (u.Scheme == "http" || u.Scheme == "https") && u.Host == c.start.Host && strings.HasPrefix(u.EscapedPath(), top)
}

// fetchLevel reads pages, reports each in order, and returns the addresses to which they link.
func (c *crawler) fetchLevel(ctx context.Context, pages []*url.URL, report func(at string, got pageData, err error)) (next []*url.URL) {
	c.pages += len(pages)
	got := make([]pageData, len(pages))
	failed := make([]error, len(pages))
	slots := make(chan struct{}, pagesAtOnce)
	var wait sync.WaitGroup
	for i, u := range pages {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			got[i], failed[i] = c.o.fetchPage(ctx, u.String(), c.isInside)
		})
	}
	wait.Wait()
	for i, u := range pages {
		if ctx.Err() != nil && failed[i] != nil {
			continue
		}
		if at := got[i].at; at != nil && at.String() != u.String() {
			if c.seen[at.String()] {
				continue // a redirection to a page that was read already
			}
			c.seen[at.String()] = true
		}
		report(u.String(), got[i], failed[i])
		if failed[i] != nil || got[i].ext != "html" {
			continue
		}
		for _, link := range linksOf(got[i].data, got[i].at) {
			if at := link.String(); c.isInside(link) && !c.seen[at] {
				c.seen[at] = true
				next = append(next, link)
			}
		}
	}
	return next
}

// fetchPage reads a page. It follows redirections on the same host that allowed accepts.
func (o *Options) fetchPage(ctx context.Context, at string, allowed func(*url.URL) bool) (pageData, error) {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, o.pageTimeout())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return pageData{}, err
	}
	req.Header.Set("User-Agent", "raddle")
	host := req.URL.Hostname()
	client := http.Client{CheckRedirect: func(r *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirect:
			return errors.New("too many redirections")
		case r.URL.Hostname() != host || !allowed(r.URL):
			return fmt.Errorf("it redirects to %s, which the source does not name", r.URL.Redacted())
		}
		return nil
	}}
	res, err := client.Do(req)
	if err != nil {
		return pageData{}, o.pageError(caller, ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return pageData{}, fmt.Errorf("the server answers %s", res.Status)
	}
	got := pageData{at: res.Request.URL}
	kind, parameters, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	if got.ext, err = extensionOf(kind, res.Request.URL); err != nil {
		return pageData{}, err
	}
	if got.data, err = io.ReadAll(io.LimitReader(res.Body, o.maxBytes()+1)); err != nil {
		return pageData{}, o.pageError(caller, ctx, err)
	}
	if int64(len(got.data)) > o.maxBytes() {
		return pageData{}, fmt.Errorf("too large: more than the %s that a document may have; leave it out", formatMegabytes(o.maxBytes()))
	}
	got.data, err = decodeText(got.data, parameters["charset"])
	return got, err
}

// pageError returns the reason why a page could not be read.
func (o *Options) pageError(caller, ctx context.Context, err error) error {
	if caller.Err() != nil {
		return caller.Err()
	}
	if ctx.Err() != nil {
		return fmt.Errorf("no answer within %s", o.pageTimeout())
	}
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err // the message has the address already
	}
	return err
}

// extensions maps media types to extensions whose name differs.
var extensions = map[string]string{
	"text/html": "html", "application/xhtml+xml": "html", "text/plain": "txt", "text/markdown": "md", "application/pdf": "pdf",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   "docx",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         "xlsx",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
	"application/vnd.oasis.opendocument.text":                                   "odt",
	"application/vnd.oasis.opendocument.spreadsheet":                            "ods",
	"application/vnd.oasis.opendocument.presentation":                           "odp",
	"application/epub+zip": "epub",
	"application/rtf":      "rtf", "text/rtf": "rtf", "text/javascript": "js", "application/javascript": "js",
}

// extensionOf returns the extension for the type of a page.
func extensionOf(kind string, at *url.URL) (string, error) {
	group, sub, _ := strings.Cut(kind, "/")
	switch {
	case group == "image" || group == "audio" || group == "video":
		return "", failf("Unexpected media type %s", kind)
	case extensions[kind] != "":
		if kind == "text/plain" {
			if ext := fileExtension(path.Base(at.Path)); ext != "" {
				return ext, nil
			}
		}
		return extensions[kind], nil
	case kind == "" || kind == "application/octet-stream":
		return fileExtension(path.Base(at.Path)), nil
	}
	return sub, nil
}

// decodeText converts text of another encoding to UTF-8.
func decodeText(data []byte, charset string) ([]byte, error) {
	if charset == "" || strings.EqualFold(charset, "utf-8") {
		return data, nil
	}
	e, err := htmlindex.Get(charset)
	if err != nil {
		return nil, fmt.Errorf("its encoding %q is not known", charset)
	}
	return e.NewDecoder().Bytes(data)
}
