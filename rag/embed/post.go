package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"raddle.dev/internal/base/redact"
	"raddle.dev/llm"
)

// maxReply is the most bytes that are read of an answer, and maxFailure of an answer that reports a failure.
const (
	maxReply   = 256 << 20
	maxFailure = 64 << 10
)

// A server is the address and the access data of a model.
type server struct {
	c      Config
	base   string
	host   string
	client *http.Client

	secrets *redact.Set
}

// An httpCall is one request.
type httpCall struct {
	path   string
	header map[string]string
	body   any
}

func (s *server) authHeader() map[string]string {
	if s.c.Key == "" {
		return nil
	}
	return map[string]string{"Authorization": "Bearer " + s.c.Key}
}

// postJSON sends JSON and reads JSON.
func (s *server) postJSON(ctx context.Context, c httpCall, reply any) error {
	body, err := json.Marshal(c.body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+c.path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range c.header {
		if v != "" {
			req.Header.Set(k, v)
		}
	}
	res, err := s.client.Do(req)
	if err != nil {
		return s.networkError(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return s.statusError(res)
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, maxReply))
	if err != nil {
		return s.networkError(ctx, err)
	}
	if err := json.Unmarshal(data, reply); err != nil {
		return s.unusableAnswer("the answer is not the JSON that was expected: " + s.cleanMessage(err.Error()))
	}
	return nil
}

// networkError returns the error of a request that the network did not deliver.
func (s *server) networkError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f := &llm.Error{Class: llm.Network, Host: s.host, Code: llm.CodeUnreachable, Message: s.cleanMessage(err.Error()), Err: err}
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		f.Class = llm.Timeout
		f.Code = ""
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Code = llm.CodeRefused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		f.Code = llm.CodeReset
	}
	return f
}

// statusError returns the error of an answer that reports a failure.
func (s *server) statusError(res *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(res.Body, maxFailure))
	message := s.cleanMessage(messageOf(text))
	if err != nil {
		message = "the answer broke off"
	}
	f := &llm.Error{Class: llm.StatusClass(res.StatusCode), Status: res.StatusCode, Host: s.host, Message: message,
		RetryAfter: retryAfter(res.Header.Get("Retry-After"))}
	switch {
	case f.Class == llm.Auth && s.c.Key == "" && s.c.KeyName != "":
		f.Message += "; no API key was sent: set " + s.c.KeyName
	case f.Class == llm.Auth && s.c.Key != "" && s.c.KeySource != "":
		f.Message += ". The key of " + s.c.KeySource + " was refused."
	case f.Class == llm.Auth && s.c.KeyName != "":
		f.Message += "; set " + s.c.KeyName + " to a key that is valid for this model"
	}
	if res.StatusCode/100 == 3 {
		f.Message = "the server sends us elsewhere: set the base URL to where the model is"
	}
	return f
}

// unusableAnswer returns the error of an answer that cannot be used.
func (s *server) unusableAnswer(message string) error {
	return &llm.Error{Class: llm.Server, Host: s.host, Message: message}
}

// messageOf returns the message in an answer, in any of the forms in which servers report failures.
func messageOf(text []byte) string {
	var forms struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  string          `json:"detail"`
	}
	var inner struct {
		Message string `json:"message"`
	}
	var plain string
	if json.Unmarshal(text, &forms) == nil {
		switch {
		case json.Unmarshal(forms.Error, &plain) == nil && plain != "":
			return plain
		case json.Unmarshal(forms.Error, &inner) == nil && inner.Message != "":
			return inner.Message
		case forms.Message != "":
			return forms.Message
		case forms.Detail != "":
			return forms.Detail
		}
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return line
}

// cleanMessage shortens a text from a server, and removes the key from it.
func (s *server) cleanMessage(text string) string {
	text = s.secrets.Text(text)
	text = strings.ToValidUTF8(text, "�")
	if len(text) > 500 {
		cut := 500
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return text
}

func retryAfter(header string) time.Duration {
	if seconds, err := strconv.Atoi(strings.TrimSpace(header)); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
