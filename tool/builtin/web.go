package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"

	"raddle.dev/internal/base/netplace"
	"raddle.dev/tool"
)

// largestBody is how much of an answer is read, in bytes.
const largestBody = 8 << 20

var urlParam = param{name: "url", required: true, about: "The address, with http:// or https://"}

var webTools = []definition{
	{
		name:     "fetch_url_via_curl",
		about:    "Get a page from the web; HTML becomes Markdown.",
		effect:   tool.ReadOnly,
		parallel: true,
		params:   []param{urlParam},
		touches: func(_ Host, a arguments) (tool.Touch, error) {
			u, err := pageURL(a["url"])
			if err != nil {
				return tool.Touch{}, err
			}
			touch := tool.Touch{Network: []string{u.Host}}
			if netplace.DescribePrivateHost(u.Hostname()) != "" {
				touch.Private = touch.Network
			}
			return touch, nil
		},
		run: fetchPage,
	},
	{
		name:     "fetch_url_via_jina",
		about:    "Get a page from the web as Markdown, through the reader of jina.ai.",
		effect:   tool.ReadOnly,
		parallel: true,
		params:   []param{urlParam},
		touches:  serviceTouches("fetch_url_via_jina", "https://r.jina.ai"),
		run: func(ctx context.Context, h Host, a arguments) (tool.Result, error) {
			if _, err := pageURL(a["url"]); err != nil {
				return tool.Result{}, err
			}
			req := request{tool: "fetch_url_via_jina", base: "https://r.jina.ai", path: "/" + a["url"]}
			if key := h.envValue("JINA_API_KEY"); key != "" {
				req.header = map[string]string{"Authorization": "Bearer " + key}
			}
			return h.askText(ctx, req)
		},
	},
	{
		name:     "get_current_weather",
		about:    "Get the weather of a place now.",
		effect:   tool.ReadOnly,
		parallel: true,
		polls:    true,
		params:   []param{{name: "location", required: true, about: "A town, such as London"}},
		touches:  serviceTouches("get_current_weather", "https://wttr.in"),
		run: func(ctx context.Context, h Host, a arguments) (tool.Result, error) {
			return h.askText(ctx, request{
				tool:  "get_current_weather",
				base:  "https://wttr.in",
				path:  "/" + url.PathEscape(a["location"]),
				query: url.Values{"format": {"4"}, "M": {""}},
			})
		},
	},
}

// serviceTouches returns what a tool touches that sends requests to one service.
func serviceTouches(name, base string) func(Host, arguments) (tool.Touch, error) {
	return func(h Host, _ arguments) (tool.Touch, error) {
		u, err := url.Parse(h.serviceURL(name, base))
		if err != nil {
			return tool.Touch{}, err
		}
		return tool.Touch{Network: []string{u.Host}}, nil
	}
}

func (h Host) serviceURL(name, base string) string {
	if b := h.Base[name]; b != "" {
		return strings.TrimSuffix(b, "/")
	}
	return base
}

func pageURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the argument url must be an address with http:// or https://, not %q", text)
	}
	return u, nil
}

// fetchPage fetches a page. It follows a redirection if the call would be permitted with that address, too, and reports
// any other one: the permission is for the address of the call. Where no one judges, it follows those on the same
// origin.
func fetchPage(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	u, err := pageURL(a["url"])
	if err != nil {
		return tool.Result{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return tool.Result{}, err
	}
	req.Header.Set("Accept", "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.5")
	ex := exchange{tool: "fetch_url_via_curl", judge: h.judgeURL("url")}
	body, resp, err := h.sendRequest(req, &ex)
	if err != nil {
		return h.reportUnreachable(ctx, u.Host, err)
	}
	if ex.stopped != nil {
		return tool.FailedResult("%s redirects to %s", a["url"], ex.stopped), nil
	}
	text, err := pageText(body, resp.Header.Get("Content-Type"), u)
	if err != nil {
		return tool.FailedResult("%s: %v", a["url"], err), nil
	}
	if resp.StatusCode >= 400 {
		return tool.FailedResult("%s answers %s: %s", a["url"], resp.Status, shortenFailure(text)), nil
	}
	return tool.TextResult(h.clipOutput(text)), nil
}

// Download returns what is at an address, as the tool that fetches pages would: it does not connect to private
// networks, follows redirections on the same origin only, and reads at most 8 MiB. The address must have https://, or
// be one of this machine. A page of HTML becomes Markdown.
func Download(ctx context.Context, address string) ([]byte, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("%q must be an address with https://", address)
	case u.Scheme == "http" && !netplace.IsThisMachine(u.Hostname()):
		return nil, fmt.Errorf("%s is not fetched: use https://, as what is sent without it can be changed on its way", u.Redacted())
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	ex := exchange{tool: "fetch_url_via_curl"}
	body, resp, err := Host{}.sendRequest(req, &ex)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the address, which may have a key
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s cannot be fetched: %w", u.Host, err)
	case ex.stopped != nil:
		return nil, fmt.Errorf("%s redirects to %w", u.Host, ex.stopped)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answers %s", u.Host, resp.Status)
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/html" || kind == "application/xhtml+xml" {
		text, err := htmlToMarkdown(string(body), u)
		return []byte(text), err
	}
	return body, nil
}

// pageText returns a page as text.
func pageText(body []byte, contentType string, u *url.URL) (string, error) {
	if contentType == "" {
		contentType = http.DetectContentType(body)
	}
	kind, _, _ := mime.ParseMediaType(contentType)
	switch {
	case kind == "text/html" || kind == "application/xhtml+xml":
		return htmlToMarkdown(string(body), u)
	case !utf8.Valid(body) || strings.ContainsRune(string(body), 0):
		return "", fmt.Errorf("it is not a text but %s, %d bytes", kind, len(body))
	}
	return string(body), nil
}

// htmlToMarkdown converts a page, without its pictures.
func htmlToMarkdown(page string, u *url.URL) (string, error) {
	c := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	for _, tag := range []string{"img", "picture", "svg", "video", "audio"} {
		c.Register.TagType(tag, converter.TagTypeRemove, converter.PriorityEarly)
	}
	return c.ConvertString(page, converter.WithDomain(u.Scheme+"://"+u.Host))
}

// A request is a request to the service of a tool.
type request struct {
	tool, base, path string
	query            url.Values
	header           map[string]string
	kind, body       string // media type and content; empty: the request has no body
	user, password   string
}

// askService returns the answer of a service. If the request fails, failed is true and failure is
// the result for the model.
func (h Host) askService(ctx context.Context, r request) (body []byte, failure tool.Result, failed bool, err error) {
	target := h.serviceURL(r.tool, r.base) + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	method := http.MethodGet
	content := io.Reader(nil)
	if r.kind != "" {
		method = http.MethodPost
		content = strings.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, content)
	if err != nil {
		return nil, tool.FailedResult("the request cannot be made from these arguments"), true, nil
	}
	if r.kind != "" {
		req.Header.Set("Content-Type", r.kind)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	if r.user != "" {
		req.SetBasicAuth(r.user, r.password)
	}
	body, resp, err := h.sendRequest(req, &exchange{tool: r.tool, anywhere: h.Base[r.tool] != ""})
	if err != nil {
		failure, err = h.reportUnreachable(ctx, req.URL.Host, err)
		return nil, failure, true, err
	}
	if resp.StatusCode >= 300 {
		return nil, tool.FailedResult("%s answers %s: %s", req.URL.Host, resp.Status, shortenFailure(string(body))), true, nil
	}
	return body, tool.Result{}, false, nil
}

// askText returns the answer of a service as it is.
func (h Host) askText(ctx context.Context, r request) (tool.Result, error) {
	body, failure, bad, err := h.askService(ctx, r)
	if bad || err != nil {
		return failure, err
	}
	return tool.TextResult(h.clipOutput(strings.ToValidUTF8(string(body), "?"))), nil
}

// sendRequest sends a request and reads the answer, within limits.
func (h Host) sendRequest(req *http.Request, ex *exchange) ([]byte, *http.Response, error) {
	client := http.Client{Timeout: fetchTimeout}
	if h.Client != nil {
		client = *h.Client
	}
	client.CheckRedirect = ex.checkRedirect
	client.Transport = &guardedTransport{base: client.Transport, resolver: h.Resolver, exchange: ex}
	req.Header.Set("User-Agent", "raddle")
	resp, err := client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, largestBody+1))
	if err == nil && len(body) > largestBody {
		err = fmt.Errorf("the answer is larger than %d MiB", largestBody>>20)
	}
	return body, resp, err
}

// reportUnreachable returns the result for a request that failed. It leaves out the URL,
// which can contain a key.
func (h Host) reportUnreachable(ctx context.Context, host string, err error) (tool.Result, error) {
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if refused, ok := errors.AsType[*privateAddressError](err); ok {
		return tool.FailedResult("%s was not fetched: %v", host, refused), nil
	}
	return tool.FailedResult("%s cannot be reached: %v", host, err), nil
}

// shortenFailure returns the beginning of the answer of a service that reports a failure.
func shortenFailure(text string) string {
	text, cut := firstRunes(strings.ToValidUTF8(strings.TrimSpace(text), "?"), 500)
	if cut {
		text += " ..."
	}
	return text
}
