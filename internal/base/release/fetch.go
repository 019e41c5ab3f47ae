package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"raddle.dev/internal/base/failure"
)

// What the files of a release may measure, and how long they may take.
const (
	largestList    = 1 << 20
	largestArchive = 256 << 20
	longestFetch   = 15 * time.Minute
	longestAnswer  = 30 * time.Second // until the server begins to answer
	mostRedirects  = 5
)

// FindNewest returns the verified list of the newest release.
func (s *Source) FindNewest(ctx context.Context) (*Manifest, error) {
	return s.fetchManifest(ctx, "latest/download")
}

// Find returns the verified list of a version such as v1.2.3.
func (s *Source) Find(ctx context.Context, version string) (*Manifest, error) {
	m, err := s.fetchManifest(ctx, "download/"+url.PathEscape(version))
	if err == nil && m.Version != version {
		return nil, s.refuse(fmt.Errorf("the server has the list of %s at the place of %s", m.Version, version))
	}
	return m, err
}

func (s *Source) fetchManifest(ctx context.Context, folder string) (*Manifest, error) {
	list, err := s.fetch(ctx, folder+"/"+ListName, largestList)
	if err != nil {
		return nil, err
	}
	signature, err := s.fetch(ctx, folder+"/"+SignatureName, largestList)
	if err != nil {
		return nil, err
	}
	m, err := ReadManifest(s.key, list, signature)
	if err != nil {
		return nil, s.refuse(err)
	}
	return m, nil
}

// FetchProgram returns the program of a release for this platform.
func (s *Source) FetchProgram(ctx context.Context, m *Manifest) ([]byte, error) {
	name := nameOwnArchive(m.Version)
	if m.sums[name] == "" {
		return nil, failure.NewInvalid("build it from its source: raddle help install", "release %s has no %s", m.Version, name)
	}
	archive, err := s.fetch(ctx, "download/"+m.Version+"/"+name, largestArchive)
	if err != nil {
		return nil, err
	}
	if err := m.Check(name, archive); err != nil {
		return nil, s.refuse(err)
	}
	program, err := extractProgram(name, archive)
	if err != nil {
		return nil, s.refuse(err)
	}
	return program, nil
}

// refuse returns the error about files that are not what the owner of the key has signed.
func (s *Source) refuse(err error) error {
	return failure.NewInvalid("try again later; if it stays so, report it to the owner of "+s.base.Host, "nothing was changed: what %s sent cannot be trusted: %v", s, err)
}

// fetch returns a file of the source. What is not whole or too large is an error.
func (s *Source) fetch(ctx context.Context, path string, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, longestFetch)
	defer cancel()
	address := s.base.JoinPath(path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "raddle")
	// A body that the transport unpacks has no length, with which a cut one is found.
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, DisableKeepAlives: true, DisableCompression: true, ResponseHeaderTimeout: longestAnswer}
	client := http.Client{Transport: transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if len(via) > mostRedirects {
			return errors.New("it is redirected too often")
		}
		if !s.allows(next.URL) {
			return fmt.Errorf("it was moved to %s, which this program was not built to ask", next.URL.Host)
		}
		return nil
	}}
	body, err := readBody(&client, request, most)
	if err != nil {
		return nil, &failure.Error{Kind: failure.Unavailable, Msg: "nothing was changed: " + address.Redacted() + " cannot be read", Err: err, Next: "check the network and its proxy, and try again"}
	}
	return body, nil
}

// readBody returns the body of a good answer.
func readBody(client *http.Client, request *http.Request, most int64) ([]byte, error) {
	response, err := client.Do(request)
	if err != nil {
		if inner, is := errors.AsType[*url.Error](err); is {
			err = inner.Err // without the address, which the caller shows
		}
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // only reads
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answered %s", strings.TrimSpace(response.Status))
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > most {
		return nil, fmt.Errorf("it has more than %d bytes", most)
	}
	return body, nil
}
