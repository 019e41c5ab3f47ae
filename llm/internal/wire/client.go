// Package wire is what the providers' packages have in common below their SDKs:
// one HTTP exchange with a read timeout between bytes, failures told apart by
// type, status and code, server-sent events, and a reply put together from
// fragments.
//
// The SDKs build and send the requests and define the types; their own retries,
// error types and stream readers are not used. The reasons, which the tests
// named TestSDKFaults show as far as a test can:
//
//   - A stream that ends early looks like one that is complete: neither the
//     OpenAI nor the Anthropic stream reader says whether its terminal marker came.
//   - A body that is no event stream (a JSON document, an HTML page) is read as
//     an empty stream.
//   - What a failure inside a stream means cannot be told by type.
//   - No timeout applies between two bytes of a stream.
package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"raddle.dev/internal/redact"
	"raddle.dev/llm"
)

const (
	connectTimeout = 10 * time.Second
	readTimeout    = 300 * time.Second
)

// A Config says where a provider is and how to reach it.
type Config struct {
	Name    string            // of the provider's package, for errors of the configuration
	Model   string            // required
	Default string            // base URL of the provider's own service
	BaseURL string            // empty: Default
	Key     string            // required at Default
	KeyName string            // what a person must set to supply Key; empty: NAME_API_KEY
	HTTP    *http.Client      // nil: one shared client with a connect timeout of 10 s
	Read    time.Duration     // longest silence while waiting for the server; 0: 300 s
	Headers map[string]string // added to every request, replacing those of the SDK
}

// A Client exchanges requests for event streams with one endpoint. It is safe
// for concurrent use, and serves the SDKs as their HTTP client.
type Client struct {
	base    *url.URL
	http    http.Client
	read    time.Duration
	headers map[string]string
	keyName string
	hasKey  bool
	secrets *redact.Set
}

// New checks c. A missing key is an *llm.Error of class Auth; every other error
// is a plain one.
func New(c Config) (*Client, error) {
	if c.Model == "" {
		return nil, fmt.Errorf("%s: no model is named", c.Name)
	}
	if c.KeyName == "" {
		c.KeyName = strings.ToUpper(c.Name) + "_API_KEY"
	}
	address := c.BaseURL
	if address == "" {
		address = c.Default
	}
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || (base.Scheme != "https" && base.Scheme != "http") {
		return nil, fmt.Errorf("%s: base URL %q: want an address like %s", c.Name, redact.URL(address), c.Default)
	}
	own := &Client{
		base: base, read: c.Read, headers: c.Headers, keyName: c.KeyName, hasKey: c.Key != "",
		secrets: secrets(c.Key, address, c.Headers),
	}
	if own.read <= 0 {
		own.read = readTimeout
	}
	if !own.hasKey && c.BaseURL == "" {
		return nil, &llm.Error{Class: llm.Auth, Host: base.Hostname(), Message: "no API key: set " + c.KeyName}
	}
	if c.HTTP != nil {
		own.http = *c.HTTP
	} else {
		own.http.Transport = sharedTransport()
	}
	// A redirect would carry the key to wherever it points: net/http takes only
	// the standard credential headers out.
	own.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return own, nil
}

// Base returns the base URL.
func (c *Client) Base() *url.URL {
	u := *c.base
	return &u
}

// sharedTransport keeps connections for all models of the process.
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

// secrets returns a redactor of what must not appear in any message: the key, the
// passwords of the address, and the values of headers, which may begin with a word
// for the scheme.
func secrets(key, address string, headers map[string]string) *redact.Set {
	set := redact.New(key)
	set.Add(redact.Passwords(address)...)
	for _, v := range headers {
		_, token, _ := strings.Cut(v, " ")
		set.Add(v, token)
	}
	return set
}

// errSilent is the cause of a call that the read timeout has ended.
var errSilent = errors.New("wire: read timeout")

// Do sends req and returns the response once it is known to be an event stream.
// Its errors are those of Client.Failure. Reading the body fails in the same
// way; at most the read timeout passes between two bytes.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(c.read, func() { cancel(errSilent) })
	timed := req.WithContext(ctx)
	if len(c.headers) > 0 {
		timed.Header = req.Header.Clone()
		for k, v := range c.headers {
			timed.Header.Set(k, v)
		}
	}
	resp, err := c.http.Do(timed)
	timer.Stop()
	if err != nil {
		err = c.Failure(ctx, err)
		cancel(nil)
		return nil, err
	}
	resp.Body = &body{client: c, ctx: ctx, cancel: cancel, timer: timer, rc: resp.Body}
	if err := c.expectEvents(resp); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}
