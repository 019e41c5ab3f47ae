package mcplogin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"raddle.dev/internal/base/netplace"
)

const (
	askTimeout  = 20 * time.Second
	longestBody = 256 << 10
)

// A web fetches what belongs to the login of one server.
type web struct {
	own    []netip.Addr // of the server
	local  bool         // the server is on this machine
	client *http.Client
}

// newWeb looks up the addresses of a server.
func newWeb(ctx context.Context, server *url.URL) (*web, error) {
	w := &web{local: netplace.IsThisMachine(server.Hostname())}
	if at, err := netip.ParseAddr(server.Hostname()); err == nil {
		w.own = []netip.Addr{at.Unmap()}
	} else if w.own, err = net.DefaultResolver.LookupNetIP(ctx, "ip", server.Hostname()); err != nil {
		return nil, fmt.Errorf("the server cannot be found: %w", err)
	}
	dialer := &net.Dialer{
		Timeout: askTimeout,
		Control: func(_, address string, _ syscall.RawConn) error { return w.checkPlace(address) },
	}
	w.client = &http.Client{
		Transport: &http.Transport{
			DialContext:         dialer.DialContext,
			DisableKeepAlives:   true,
			TLSHandshakeTimeout: askTimeout,
		},
		Timeout:       askTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return w, nil
}

// checkPlace returns an error for an address to which nothing that a server says may lead.
func (w *web) checkPlace(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("the address %s cannot be read: %w", address, err)
	}
	ip := at.Addr().Unmap()
	what := netplace.DescribePrivate(ip)
	if what == "" || slices.ContainsFunc(w.own, func(own netip.Addr) bool { return own.Unmap() == ip }) || w.local && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%s is %s, and the server is not there: it is not asked", ip, what)
}

// parseAddress returns an address that may be fetched or opened: over https, or on this machine.
func parseAddress(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "" || u.User != nil || u.Fragment != "":
		return nil, errors.New("it is not a plain address such as https://example.org/path")
	case u.Scheme != "https" && (u.Scheme != "http" || !netplace.IsThisMachine(u.Hostname())):
		return nil, errors.New("it must begin with https://")
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return nil, errors.New("it has white space or control characters")
	}
	return u, nil
}

// A webAnswer is what an address answers.
type webAnswer struct {
	status int
	header http.Header
	body   []byte
}

// sendRequest makes one request.
func (w *web) sendRequest(ctx context.Context, method, address, media, body string, header http.Header) (webAnswer, error) {
	if _, err := parseAddress(address); err != nil {
		return webAnswer{}, fmt.Errorf("%s is not asked: %w", cleanText(address), err)
	}
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return webAnswer{}, err
	}
	request.Header.Set("Accept", "application/json")
	if media != "" {
		request.Header.Set("Content-Type", media)
	}
	for name, values := range header {
		request.Header[name] = values
	}
	response, err := w.client.Do(request)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err // its text would repeat the address, which may have a code
		}
		if why := netplace.DescribeFailure(err); why != "" && ctx.Err() == nil {
			return webAnswer{}, fmt.Errorf("%s %s", request.URL.Host, why)
		}
		return webAnswer{}, fmt.Errorf("%s cannot be asked: %w", request.URL.Host, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, longestBody+1))
	if err != nil || len(text) > longestBody {
		return webAnswer{}, fmt.Errorf("the answer of %s cannot be read: %w", request.URL.Host, errors.Join(err, errors.New("or it is too long")))
	}
	return webAnswer{status: response.StatusCode, header: response.Header, body: text}, nil
}

// fetchJSON reads a document. found is false if there is none.
func (w *web) fetchJSON(ctx context.Context, address string, into any) (found bool, err error) {
	r, err := w.sendRequest(ctx, http.MethodGet, address, "", "", nil)
	if err != nil {
		return false, err
	}
	if r.status != http.StatusOK {
		return false, nil
	}
	if err := json.Unmarshal(r.body, into); err != nil {
		return false, fmt.Errorf("%s is not valid JSON", address)
	}
	return true, nil
}

// cleanText returns a text of a server as it may be shown: short and without control characters.
func cleanText(text string) string {
	const longest = 200
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2060 && r <= 0x206f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest]) + "..."
	}
	return text
}
