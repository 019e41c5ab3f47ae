package setup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/loopback"
)

// A BrowserLogin gets a key of OpenRouter through the person's browser: the person agrees on OpenRouter's page, which
// sends a code to an address of this machine; the code and a secret that only this process knows are exchanged for a
// key.
type BrowserLogin struct {
	Page     string        // where the person agrees
	Exchange string        // where the code is exchanged for a key
	Wait     time.Duration // for the person
	Show     func(address string)
}

// openRouterWait is how long a person may take to agree.
const openRouterWait = 5 * time.Minute

// NewOpenRouterLogin returns the login of OpenRouter. show is called once with the address that the person has to open.
func NewOpenRouterLogin(show func(address string)) *BrowserLogin {
	return &BrowserLogin{
		Page:     "https://openrouter.ai/auth",
		Exchange: "https://openrouter.ai/api/v1/auth/keys",
		Wait:     openRouterWait,
		Show:     show,
	}
}

// FetchKey waits for the person to agree and returns the key. It listens only on this machine, for one answer.
func (l *BrowserLogin) FetchKey(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, l.Wait)
	defer cancel()
	listener, err := loopback.Listen(0)
	if err != nil {
		return "", err
	}
	defer listener.Close()
	verifier := loopback.RandomText()
	l.Show(l.Page + "?" + url.Values{
		"callback_url":   {listener.Address("localhost") + "?state=" + listener.State},
		"code_challenge": {loopback.Challenge(verifier)}, "code_challenge_method": {"S256"},
	}.Encode())
	answer, err := listener.Wait(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "", failure.NewUsage("try again: raddle login openrouter", "the login was not confirmed within %v", l.Wait)
	case err != nil:
		return "", err
	case answer.Get("code") == "":
		return "", failure.NewUsage("try again: raddle login openrouter", "OpenRouter has sent no code")
	}
	return l.exchange(ctx, answer.Get("code"), verifier)
}

// exchange returns the key for a code. Its errors quote neither.
func (l *BrowserLogin) exchange(ctx context.Context, code, verifier string) (string, error) {
	const wait, most = 30 * time.Second, 64 << 10
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	body, err := json.Marshal(map[string]string{"code": code, "code_verifier": verifier, "code_challenge_method": "S256"})
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.Exchange, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err
		}
		return "", fmt.Errorf("OpenRouter cannot be asked for the key: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return "", failure.NewUsage("try again: raddle login openrouter", "OpenRouter gives no key for its code (status %d)", response.StatusCode)
	}
	var reply struct{ Key string }
	if err := json.NewDecoder(io.LimitReader(response.Body, most)).Decode(&reply); err != nil || reply.Key == "" {
		return "", failure.NewUsage("try again: raddle login openrouter", "OpenRouter answers without a key")
	}
	return reply.Key, nil
}
