package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/redact"
	"raddle.dev/internal/process/catalogue"
	"raddle.dev/internal/storage/config"
)

// CatalogueAddress is where a newer catalogue of models is read from unless the user names another source.
const CatalogueAddress = "https://models.dev/api.json"

// updateWait is how long the server of a catalogue has.
const updateWait = time.Minute

// Update reads a catalogue from a file or an https address, checks it, and stores it in the directory of config.yaml,
// where later processes find it. Only facts about models are taken over. A catalogue that cannot be read or makes no
// sense changes nothing.
func (k *Catalogue) Update(ctx context.Context, source string) (catalogue.About, error) {
	shown := source // its password stays here
	if strings.Contains(source, "://") {
		shown = redact.RedactURL(source)
	}
	data, err := readSource(ctx, source)
	var parsed []byte
	if err == nil {
		parsed, err = catalogue.Parse(data, shown, time.Now())
	}
	if err != nil {
		return catalogue.About{}, failure.NewUsage("give a file or an https address with the data of "+CatalogueAddress, "%s: %v", shown, err)
	}
	c, err := catalogue.Open(parsed)
	if err != nil {
		return catalogue.About{}, err
	}
	return c.About, config.WritePrivate(k.path, parsed)
}

// readSource returns the bytes of a file or of an address.
func readSource(ctx context.Context, source string) ([]byte, error) {
	address, err := url.Parse(source)
	if err != nil || !strings.Contains(source, "://") {
		return plainfile.Read(source, catalogue.MaxSize)
	}
	if address.Scheme != "https" && !(address.Scheme == "http" && isLoopback(source)) {
		return nil, errors.New("a catalogue is read over https only")
	}
	ctx, cancel := context.WithTimeout(ctx, updateWait)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, source, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{CheckRedirect: func(next *http.Request, _ []*http.Request) error {
		return fmt.Errorf("it moved to %s: give that address", next.URL.Redacted())
	}}
	response, err := client.Do(request)
	if err != nil {
		if inner, is := errors.AsType[*url.Error](err); is {
			err = inner.Err // without the address, which the caller shows
		}
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answered %s", response.Status)
	}
	var body bytes.Buffer
	if _, err := io.Copy(&body, io.LimitReader(response.Body, catalogue.MaxSize+1)); err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}
