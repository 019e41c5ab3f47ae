// Package wire is what the providers' packages share. A provider's package
// writes the JSON of a request and reads the JSON of its events; this package
// does the rest: one HTTP exchange with limits for silence, time and size,
// failures classified by type, status and code, server-sent events, histories
// with valid calls, and a reply assembled from fragments.
//
// The provider packages use net/http and not the vendors' libraries, which
// would account for most of the program's size, build time and start-up time.
// The vendors' stream readers handle some cases wrongly: an early end looks
// like a complete reply, a web page looks like an empty stream, failures inside
// a stream have no type, and silence has no limit. This package handles these
// cases, and package wiretest tests them for every provider. The module in
// llm/internal/sdkcheck compares the requests and events of the tests with the
// types of the vendors' libraries.
package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"raddle.dev/internal/base/redact"
	"raddle.dev/llm"
)

const (
	connectTimeout = 10 * time.Second
	readTimeout    = 300 * time.Second
	streamTimeout  = 30 * time.Minute
	maxReply       = 16 << 20
)

// A Config says where a provider is and how to connect to it.
type Config struct {
	Name    string // of the provider's package, for configuration errors
	Model   string // required
	Default string // base URL of the provider's own service, which needs a key
	// Endpoint is that of the caller: Default if BaseURL is empty, and KeyName NAME_API_KEY if that is.
	llm.Endpoint

	// Authorize adds to a request, which is complete otherwise, what the server accepts it by, and returns the secrets
	// that no message may have. nil: the headers of the provider's package are enough.
	Authorize func(r *http.Request) (secrets []string, err error)
	// Media is the content type of streams that are no server-sent events, and Translate makes such events of one; "":
	// there are none.
	Media     string
	Translate func(stream io.Reader) io.Reader
}

// A Client sends requests to one endpoint and receives event streams. It is
// safe for concurrent use.
type Client struct {
	base    *url.URL
	http    http.Client
	read    time.Duration
	total   time.Duration // negative: no limit
	largest int           // negative: no limit
	headers map[string]string
	members map[string]any
	keyName string
	hasKey  bool
	secrets *redact.Set

	authorize func(r *http.Request) (secrets []string, err error)
	media     string
	translate func(stream io.Reader) io.Reader
}

// New checks c and returns a Client. A missing key is an *llm.Error of class
// Auth; other errors have no class.
func New(c Config) (*Client, error) {
	if c.Model == "" {
		return nil, fmt.Errorf("%s: no model is set", c.Name)
	}
	c.KeyName = cmp.Or(c.KeyName, strings.ToUpper(c.Name)+"_API_KEY")
	address := cmp.Or(c.BaseURL, c.Default)
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || (base.Scheme != "https" && base.Scheme != "http") {
		return nil, fmt.Errorf("%s: base URL %q: it must be an address like %s", c.Name, redact.RedactURL(address), c.Default)
	}
	own := &Client{
		base:      base,
		read:      c.ReadTimeout,
		total:     c.StreamTimeout,
		largest:   c.MaxReply,
		headers:   c.Headers,
		members:   c.Body,
		keyName:   c.KeyName,
		hasKey:    c.APIKey != "",
		secrets:   newSecretSet(c.APIKey, address, c.Headers),
		authorize: c.Authorize,
		media:     c.Media,
		translate: c.Translate,
	}
	if own.read <= 0 {
		own.read = readTimeout
	}
	own.total = cmp.Or(own.total, streamTimeout)
	if own.largest == 0 {
		own.largest = maxReply
	}
	if !own.hasKey && c.BaseURL == "" {
		return nil, &llm.Error{Class: llm.Auth, Host: base.Hostname(), Message: "no API key: set " + c.KeyName}
	}
	if c.HTTPClient != nil {
		own.http = *c.HTTPClient
	} else {
		own.http.Transport = sharedTransport()
	}
	// A redirect would send the key to its target: net/http removes only the
	// standard credential headers.
	own.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return own, nil
}

// BaseURL returns the base URL.
func (c *Client) BaseURL() *url.URL {
	return new(*c.base)
}

// sharedTransport holds the connections for all models of the process.
var sharedTransport = sync.OnceValue(func() http.RoundTripper {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	if d, ok := http.DefaultTransport.(*http.Transport); ok {
		t = d.Clone()
	}
	t.DialContext = (&net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}).DialContext
	t.TLSHandshakeTimeout = connectTimeout
	t.MaxIdleConnsPerHost = 16
	return t
})

// newSecretSet returns a redactor for what must not appear in any message: the key,
// the passwords of the address, and the values of headers, with and without a
// leading scheme.
func newSecretSet(key, address string, headers map[string]string) *redact.Set {
	set := redact.New(key)
	set.Add(redact.FindPasswords(address)...)
	for _, v := range headers {
		_, token, _ := strings.Cut(v, " ")
		set.Add(v, token)
	}
	return set
}

// errSilent and errLong are the causes of a call that was ended by the read
// timeout or the stream timeout.
var (
	errSilent = errors.New("wire: read timeout")
	errLong   = errors.New("wire: stream timeout")
)

// Do sends req and returns the response once it is known to be an event stream.
// Its errors are those of Client.ClassifyError, and so are those of reading the body.
// At most the read timeout passes between two bytes, and at most the stream
// timeout until the end.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.sendRequest(req)
	if err != nil {
		return nil, err
	}
	if err := c.expectEvents(resp); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// DoJSON does the same for a request whose answer is not a stream of events.
func (c *Client) DoJSON(req *http.Request) (*http.Response, error) {
	resp, err := c.sendRequest(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 || resp.StatusCode < 200 {
		defer resp.Body.Close()
		return nil, c.responseError(resp)
	}
	return resp, nil
}

// sendRequest sends req and returns whatever the server answers.
func (c *Client) sendRequest(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	end := func() { cancel(nil) }
	if c.total > 0 {
		clock := time.AfterFunc(c.total, func() { cancel(errLong) })
		end = func() { clock.Stop(); cancel(nil) }
	}
	timer := time.AfterFunc(c.read, func() { cancel(errSilent) })
	timed := req.WithContext(ctx)
	if len(c.headers) > 0 {
		timed.Header = req.Header.Clone()
		for k, v := range c.headers {
			timed.Header.Set(k, v)
		}
	}
	resp, err := c.send(timed)
	timer.Stop()
	if err != nil {
		err = c.ClassifyError(ctx, err)
		end()
		return nil, err
	}
	resp.Body = &body{client: c, ctx: ctx, end: end, timer: timer, rc: resp.Body}
	return resp, nil
}

// send authorizes a request and sends it.
func (c *Client) send(r *http.Request) (*http.Response, error) {
	if c.authorize != nil {
		secrets, err := c.authorize(r)
		c.secrets.Add(secrets...)
		if err != nil {
			return nil, err
		}
	}
	return c.http.Do(r)
}
