package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"raddle.dev/llm"
)

// classes maps machine-readable codes of the providers to classes. A code is
// more precise than a status of 400 or 500, and is the only information about
// an error inside a stream. The codes of the providers do not collide.
var classes = map[string]llm.Class{
	// OpenAI and compatible servers
	"invalid_api_key":         llm.Auth,
	"rate_limit_exceeded":     llm.RateLimited,
	"insufficient_quota":      llm.RateLimited,
	"context_length_exceeded": llm.ContextLength,
	"server_error":            llm.Server,
	// Anthropic
	"authentication_error":  llm.Auth,
	"permission_error":      llm.Auth,
	"rate_limit_error":      llm.RateLimited,
	"overloaded_error":      llm.Overloaded,
	"timeout_error":         llm.Timeout,
	"api_error":             llm.Server,
	"invalid_request_error": llm.BadRequest,
	"not_found_error":       llm.BadRequest,
	"request_too_large":     llm.BadRequest,
	"billing_error":         llm.BadRequest,
	// Google
	"API_KEY_INVALID":     llm.Auth,
	"UNAUTHENTICATED":     llm.Auth,
	"PERMISSION_DENIED":   llm.Auth,
	"RESOURCE_EXHAUSTED":  llm.RateLimited,
	"UNAVAILABLE":         llm.Overloaded,
	"DEADLINE_EXCEEDED":   llm.Timeout,
	"INTERNAL":            llm.Server,
	"INVALID_ARGUMENT":    llm.BadRequest,
	"FAILED_PRECONDITION": llm.BadRequest,
	"NOT_FOUND":           llm.BadRequest,
}

// providerError is a provider's description of a failure.
type providerError struct {
	message    string
	codes      []string // from the most to the least precise
	status     int      // a status in the JSON; 0: none
	retryAfter time.Duration
}

// parseErrorDocument reads the error documents of the providers and of the usual
// OpenAI-compatible servers. It reports whether data is one.
func parseErrorDocument(data []byte) (providerError, bool) {
	data = bytes.TrimSpace(data)
	if list := []json.RawMessage(nil); json.Unmarshal(data, &list) == nil && len(list) > 0 {
		data = list[0] // Google sends its document in a list if the request asks for one
	}
	var doc struct {
		Error, Message, Detail json.RawMessage
	}
	if json.Unmarshal(data, &doc) != nil {
		return providerError{}, false
	}
	for _, raw := range []json.RawMessage{doc.Error, doc.Message, doc.Detail} {
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			if t, ok := parseObject(raw); ok {
				return t, true
			}
			return providerError{message: string(raw)}, true
		}
		t, _ := parseObject(data) // the codes may be next to the text
		t.message = text
		return t, text != ""
	}
	return providerError{}, false
}

func parseObject(raw json.RawMessage) (providerError, bool) {
	var e struct {
		Message, Type string
		Code          json.RawMessage // a name or a number
		Status        json.RawMessage // a name at Google
		Details       json.RawMessage // a list at Google
	}
	if json.Unmarshal(raw, &e) != nil {
		return providerError{}, false
	}
	t := providerError{message: e.Message}
	var details []struct{ Reason, RetryDelay string }
	if json.Unmarshal(e.Details, &details) != nil {
		details = nil
	}
	for _, d := range details {
		t.codes = append(t.codes, d.Reason)
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
			t.retryAfter = wait
		}
	}
	for _, raw := range []json.RawMessage{e.Code, e.Status} {
		var name string
		if json.Unmarshal(raw, &name) == nil {
			t.codes = append(t.codes, name)
		} else if n, err := strconv.Atoi(string(raw)); err == nil && n >= 400 && n < 600 {
			t.status = n
		}
	}
	t.codes = append(t.codes, e.Type)
	return t, true
}

// EventError returns the failure that data, an event of a stream, reports, or nil if
// it reports none.
func (c *Client) EventError(data []byte) error {
	if !bytes.Contains(data, []byte(`"error"`)) {
		return nil
	}
	var doc struct{ Error json.RawMessage }
	if json.Unmarshal(data, &doc) != nil || len(doc.Error) == 0 || string(doc.Error) == "null" {
		return nil
	}
	t, _ := parseErrorDocument(data)
	return c.buildError(t, t.status)
}

// responseError returns the failure that a response with an error status describes.
func (c *Client) responseError(resp *http.Response) error {
	if resp.StatusCode < 400 {
		return &llm.Error{
			Class:   llm.BadRequest,
			Status:  resp.StatusCode,
			Host:    c.base.Hostname(),
			Message: c.cleanText(fmt.Sprintf("the endpoint redirects to %s: set the base URL to the final address", resp.Header.Get("Location"))),
		}
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	t, ok := parseErrorDocument(data)
	switch {
	case ok:
	case err != nil && len(data) == 0:
		t.message = http.StatusText(resp.StatusCode)
	default:
		t.message = c.bodyExcerpt(data)
	}
	t.message = cmp.Or(t.message, http.StatusText(resp.StatusCode))
	if code, _, _ := strings.Cut(resp.Header.Get("X-Amzn-Errortype"), ":"); code != "" { // AWS says it there only
		t.codes = append([]string{code}, t.codes...)
	}
	e := c.buildError(t, resp.StatusCode)
	if wait := retryAfter(resp.Header); wait > 0 {
		e.RetryAfter = wait
	}
	return e
}

// notEvents returns the failure of a successful response that is not an event
// stream.
func (c *Client) notEvents(data []byte, kind string) error {
	var doc struct{ Error json.RawMessage }
	if json.Unmarshal(data, &doc) == nil && len(doc.Error) > 0 && string(doc.Error) != "null" {
		t, _ := parseErrorDocument(data)
		return c.buildError(t, t.status)
	}
	kind = cmp.Or(kind, "data without a content type")
	return &llm.Error{
		Class:   llm.BadRequest,
		Host:    c.base.Hostname(),
		Message: c.cleanText(fmt.Sprintf("the endpoint answered with %s instead of an event stream; check the base URL and whether it supports streaming: %s", kind, c.bodyExcerpt(data))),
	}
}

func (c *Client) buildError(t providerError, status int) *llm.Error {
	e := &llm.Error{Class: llm.Server, Status: status, Host: c.base.Hostname(), RetryAfter: t.retryAfter}
	if status != 0 {
		e.Class = llm.StatusClass(status)
	}
	vague := status == 0 || e.Class == llm.BadRequest || e.Class == llm.Server
	for _, code := range t.codes {
		if e.Code == "" {
			e.Code = c.secrets.Text(code)
		}
		class, ok := classes[code]
		if ok && vague && !contradicts(e.Class, class, status) {
			e.Class = class
			break
		}
	}
	e.Message = c.cleanText(t.message) + c.errorAdvice(e)
	return e
}

// contradicts reports whether a code says something else than the status: a failing server is no bad request, and a
// request that was refused with a status of 4xx is refused again, whatever the body says.
func contradicts(of, code llm.Class, status int) bool {
	switch {
	case status == 0:
		return false
	case of == llm.Server:
		return code == llm.BadRequest
	}
	return of == llm.BadRequest && code != llm.Auth && code != llm.ContextLength && code != llm.BadRequest
}

// errorAdvice returns what the user can do, preceded by a separator.
func (c *Client) errorAdvice(e *llm.Error) string {
	switch {
	case e.Class == llm.Auth && c.authorize != nil:
		return "" // what authorizes knows what to do
	case e.Class == llm.Auth && !c.hasKey:
		return "; no API key was sent: set " + c.keyName
	case e.Class == llm.Auth:
		return "; set " + c.keyName + " to a key that is valid for this model"
	case e.Status == http.StatusNotFound:
		return "; check the name of the model and the base URL"
	}
	return ""
}

// retryAfter reads the headers in which providers ask for a wait.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e12 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e9 {
		return time.Duration(s * float64(time.Second))
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(t).Round(time.Second))
	}
	return 0
}

// bodyExcerpt shortens a body that is not the provider's JSON to the title of a web
// page or the first characters. It removes secrets first, because half of a
// secret would not be found.
func (c *Client) bodyExcerpt(data []byte) string {
	text := c.secrets.Text(string(data))
	lower := strings.ToLower(text)
	if i := strings.Index(lower, "<title>"); i >= 0 && len(lower) == len(text) {
		title, _, _ := strings.Cut(text[i+len("<title>"):], "<")
		return fmt.Sprintf("a web page with the title %q", strings.TrimSpace(title))
	}
	const most = 200
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}

// cleanText converts provider text to one line for a terminal, and removes secrets.
func (c *Client) cleanText(text string) string {
	const most = 1000
	text = c.secrets.Text(text)
	text = strings.ToValidUTF8(text, "?")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "..."
	}
	return text
}
