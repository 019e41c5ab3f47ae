package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/redact"
)

// A ServerAddress is the address of a server that is compatible with OpenAI's interface, as a person gave it.
type ServerAddress struct {
	Base  string // without a slash at its end
	Host  string // without the port
	Plain bool   // what is sent can be read on the way: it is plain HTTP, and not to this machine
}

// ParseServerAddress reads an address. Without a scheme it is HTTP for this machine and HTTPS for others.
func ParseServerAddress(text string) (ServerAddress, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return ServerAddress{}, failure.NewUsage("", "the address is empty")
	}
	hasScheme := strings.Contains(text, "://")
	if !hasScheme {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "":
		return ServerAddress{}, failure.NewUsage("write it like http://127.0.0.1:8080/v1", "the address names no server")
	case u.Scheme != "http" && u.Scheme != "https":
		return ServerAddress{}, failure.NewUsage("", "the address must begin with http:// or https://")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return ServerAddress{}, failure.NewUsage("a key is asked for next", "the address has a user, a password or parameters")
	}
	local := isLoopback(u.Scheme + "://" + u.Host)
	if !hasScheme && !local {
		u.Scheme = "https"
	}
	path := strings.TrimRight(u.Path, "/")
	for _, end := range []string{"/models", "/chat/completions"} {
		path = strings.TrimRight(strings.TrimSuffix(path, end), "/")
	}
	u.Path = path
	return ServerAddress{Base: u.String(), Host: u.Hostname(), Plain: u.Scheme == "http" && !local}, nil
}

// ErrKeyNeeded reports a server that lists its models only with a valid key.
var ErrKeyNeeded = errors.New("the server wants a valid key")

const (
	serverWait = 10 * time.Second // that a server may take to list its models
	serverSize = 8 << 20          // bytes of the list
	mostModels = 2000
)

// ListServerModels asks a server for the names of its models, and returns them with the address that raddle is to call:
// with /v1 if the server answers only there. The key may be "". It follows no redirect, which would take the key
// elsewhere.
func ListServerModels(ctx context.Context, address ServerAddress, key string) (base string, models []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, serverWait)
	defer cancel()
	tries := []string{address.Base}
	if !strings.HasSuffix(address.Base, "/v1") {
		tries = append(tries, address.Base+"/v1")
	}
	var first error
	for _, base := range tries {
		models, err := fetchModels(ctx, base, key)
		if err == nil {
			return base, models, nil
		}
		if _, isAnswer := errors.AsType[*noListError](err); !isAnswer {
			return "", nil, err
		}
		first = cmp.Or(first, err)
	}
	return "", nil, first
}

// A noListError reports an answer without a list of models: it may be at another path.
type noListError struct{ text string }

func (e *noListError) Error() string { return e.text }

func fetchModels(ctx context.Context, base, key string) ([]string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/models", nil)
	if err != nil {
		return nil, err
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	request.Header.Set("Accept", "application/json")
	client := &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, describeNoServer(base, err)
	}
	defer func() { _ = response.Body.Close() }()
	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return nil, fmt.Errorf("%w (status %d)", ErrKeyNeeded, code)
	case code >= 300 && code < 400:
		to, err := response.Location()
		if err != nil {
			return nil, &noListError{fmt.Sprintf("%s/models answers with a redirect", base)}
		}
		return nil, failure.NewUsage("give that address if you trust it", "the server redirects to %s", redact.RedactURL(to.Scheme+"://"+to.Host+to.Path))
	case code != http.StatusOK:
		return nil, &noListError{fmt.Sprintf("%s/models answers with status %d", base, code)}
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, serverSize+1))
	if err != nil {
		return nil, describeNoServer(base, err)
	}
	if len(text) > serverSize {
		return nil, failure.NewUsage("", "the list of models of the server has more than %d MiB", serverSize>>20)
	}
	models, ok := readModelNames(text)
	if !ok {
		return nil, &noListError{fmt.Sprintf("%s/models answers with something else than a list of models", base)}
	}
	return models, nil
}

// describeNoServer returns the error of a server that does not answer, in a few words.
func describeNoServer(base string, err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return failure.NewUsage("", "%s does not answer in %v", base, serverWait)
	}
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	return failure.NewUsage("", "%s cannot be reached: %v", base, err)
}

// readModelNames reads a list of models: {"data": [{"id": …}]} as most servers write it, {"models": [{"name": …}]}, or
// the list alone. It leaves out names that no request could have.
func readModelNames(text []byte) (names []string, ok bool) {
	type named struct{ ID, Name, Model string }
	var list []named
	if json.Unmarshal(text, &list) != nil {
		var reply struct{ Data, Models *[]named }
		if json.Unmarshal(text, &reply) != nil || reply.Data == nil && reply.Models == nil {
			return nil, false
		}
		if list = nil; reply.Data != nil {
			list = *reply.Data
		} else {
			list = *reply.Models
		}
	}
	const longest = 200
	for _, m := range list {
		name := cmp.Or(m.ID, m.Name, m.Model)
		odd := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
		if name == "" || len(name) > longest || strings.ContainsFunc(name, odd) || len(names) == mostModels {
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), true
}

// NameServer returns a name for a new client that calls a server: that of its host, or "local" for an address of
// numbers and for this machine.
func (r *Resolver) NameServer(address ServerAddress) string {
	name := "local"
	if net.ParseIP(address.Host) == nil && address.Host != "localhost" {
		labels := strings.Split(strings.ToLower(address.Host), ".")
		for len(labels) > 2 && slices.Contains([]string{"api", "www", "inference", "llm"}, labels[0]) {
			labels = labels[1:]
		}
		name = labels[0]
	}
	unique := name
	for i := 2; ; i++ {
		if _, known := r.FindKey(unique); !known && unique != "script" {
			return unique
		}
		unique = fmt.Sprintf("%s-%d", name, i)
	}
}
