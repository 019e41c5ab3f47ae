// Package cloudkey finds the credentials that the programs of Amazon's and Google's clouds keep on a machine, and
// renews them before they expire.
//
// It reads what the user has configured for these programs: variables of the environment, and files in the home
// directory. It asks the metadata service of a machine or a container only if it is told to.
package cloudkey

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"
)

const (
	margin    = 5 * time.Minute  // before they expire, credentials are renewed
	readAgain = time.Minute      // after which files are read again, which other programs may have written
	askTime   = 30 * time.Second // that a service or a program may take to answer
	mostBytes = 1 << 20          // of a file, and of an answer
)

// A renewer keeps a value until shortly before it expires. Callers that ask at the same time wait for one of them that
// finds it.
type renewer[T any] struct {
	turn  chan struct{} // holds one value while a caller uses the fields below
	value T
	has   bool
	renew time.Time // when the value is found again
	until time.Time // when it expires; zero: never
}

func newRenewer[T any]() *renewer[T] { return &renewer[T]{turn: make(chan struct{}, 1)} }

// get returns the value. find returns a new one, and when it expires: zero if that is not known. A value that could not
// be renewed is used until it expires.
func (r *renewer[T]) get(ctx context.Context, find func(ctx context.Context) (T, time.Time, error)) (T, error) {
	var none T
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	defer func() { <-r.turn }()
	now := time.Now()
	if r.has && now.Before(r.renew) {
		return r.value, nil
	}
	value, until, err := find(ctx)
	switch {
	case ctx.Err() != nil:
		return none, ctx.Err()
	case err != nil && r.has && now.Before(r.until):
		return r.value, nil
	case err != nil:
		return none, err
	}
	r.value, r.has, r.until, r.renew = value, true, until, until.Add(-margin)
	if until.IsZero() || r.renew.Before(now) {
		r.renew = now.Add(readAgain)
	}
	return value, nil
}

// askJSON sends a request and reads the answer into v. It follows no redirect, which would take a token elsewhere.
func askJSON(client *http.Client, r *http.Request, v any) (status int, err error) {
	own := http.Client{}
	if client != nil {
		own = *client
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	ctx, cancel := context.WithTimeout(r.Context(), askTime)
	defer cancel()
	response, err := own.Do(r.WithContext(ctx))
	if err != nil {
		return 0, fmt.Errorf("%s cannot be reached: %w", r.URL.Host, plainError(err))
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(response.Body, mostBytes))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", r.URL.Host, plainError(err))
	}
	if response.StatusCode != http.StatusOK {
		return response.StatusCode, fmt.Errorf("%s answers with status %d%s", r.URL.Host, response.StatusCode, describeRefusal(data))
	}
	if text, is := v.(*string); is {
		*text = strings.TrimSpace(string(data))
		return response.StatusCode, nil
	}
	if err := json.Unmarshal(data, v); err != nil {
		return response.StatusCode, fmt.Errorf("%s answers with something else than JSON", r.URL.Host)
	}
	return response.StatusCode, nil
}

// plainError returns the cause of a failed exchange: its text has the address, whose parameters nobody needs.
func plainError(err error) error {
	if inner, is := err.(interface{ Unwrap() error }); is {
		return inner.Unwrap()
	}
	return err
}

// describeRefusal returns what a service says about a refusal, after a separator.
func describeRefusal(data []byte) string {
	var doc struct {
		Message     string
		Error       string
		Description string `json:"error_description"`
	}
	if json.Unmarshal(data, &doc) != nil {
		return ""
	}
	for _, text := range []string{doc.Description, doc.Message, doc.Error} {
		if text != "" {
			return ": " + cutLine(text)
		}
	}
	return ""
}

// cutLine returns the beginning of a text in one line.
func cutLine(text string) string {
	const most = 300
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "..."
	}
	return text
}
