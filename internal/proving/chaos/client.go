package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// userHeader is the header that names the user of a request.
const userHeader = "X-Raddle-Chaos-User"

// requestWait is how long a request may take. A frozen server does not answer.
const requestWait = 8 * time.Second

// A client calls the servers over their API.
type client struct {
	token string
	http  http.Client
}

func newClient(token string) *client {
	return &client{token: token, http: http.Client{Timeout: requestWait, Transport: &http.Transport{DisableKeepAlives: true}}}
}

// A refusedError is an answer that another try cannot change.
type refusedError struct {
	status int
	text   string
}

// Error says what the server said.
func (e *refusedError) Error() string {
	return fmt.Sprintf("the server refuses it with %d: %s", e.status, e.text)
}

// post sends a request, and decodes the answer into out. key is an idempotency key, or "".
func (c *client) post(ctx context.Context, address, user, key string, in, out any) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(userHeader, user)
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	const most = 1 << 20
	body, err := io.ReadAll(io.LimitReader(res.Body, most))
	switch {
	case err != nil:
		return err
	case res.StatusCode < 300:
		return json.Unmarshal(body, out)
	case res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusConflict:
		return fmt.Errorf("%s: %s", res.Status, body)
	}
	return &refusedError{res.StatusCode, string(body)}
}

// startRun starts a run at a server, and returns its id.
func (c *client) startRun(ctx context.Context, address, user string, body startBody) (string, error) {
	var started struct {
		Run string `json:"run"`
	}
	err := c.post(ctx, address+"/api/v1/runs", user, user, body, &started)
	if err == nil && started.Run == "" {
		err = fmt.Errorf("the answer to a start has no run")
	}
	return started.Run, err
}

// startBody says what to run.
type startBody struct {
	Agent     string            `json:"agent"`
	Prompt    string            `json:"prompt,omitempty"`
	Variables map[string]string `json:"variables,omitempty"`
	Session   string            `json:"session,omitempty"`
}

// answerBody answers a question.
type answerBody struct {
	Answers []answer `json:"answers"`
}

type answer struct {
	ID    string `json:"id"`
	Value any    `json:"value"`
}

// answerRun answers a question of a run at a server.
func (c *client) answerRun(ctx context.Context, address, user, run, question string, value any) error {
	return c.post(ctx, address+"/api/v1/runs/"+run+"/answers", user, "", answerBody{[]answer{{question, value}}}, &struct{}{})
}
