package wire

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/llm"
)

func TestReplyLimit(t *testing.T) {
	const most = 1 << 20
	for _, c := range []struct {
		name string
		add  func(a *Assembly, n int) error
	}{
		{"text", func(a *Assembly, _ int) error { return a.AddText(0, "0123456789") }},
		{"reasoning", func(a *Assembly, _ int) error { return a.AddReasoning(0, "0123456789") }},
		{"arguments", func(a *Assembly, _ int) error { return a.AddCall(0, "", "f", "0123456789") }},
		{"signatures", func(a *Assembly, _ int) error { return a.Seal(0, "0123456789") }},
		{"media", func(a *Assembly, _ int) error { return a.AddPart(llm.File{Data: make([]byte, 1000)}, 1000) }},
		{"calls without arguments", func(a *Assembly, n int) error { return a.AddCall(n, "", "f", "") }},
		{"all in turns", func(a *Assembly, n int) error {
			return errors.Join(a.AddText(1, "0123456789"), a.AddReasoning(2, "0123456789"), a.AddCall(3, "", "f", "0123456789"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var shown int
			a := newClient(t, Config{Endpoint: llm.Endpoint{MaxReply: most}}).NewAssembly("test", func(d llm.Delta) error {
				shown += len(d.Text) + len(d.Reasoning)
				return nil
			})
			var err error
			n := 0
			for ; err == nil && n <= most; n++ {
				err = c.add(a, n)
			}
			var e *llm.Error
			if !errors.As(err, &e) || e.Class != llm.Limit || e.IsTransient() ||
				!strings.HasPrefix(err.Error(), "reply beyond the limit: api.example.org: the reply is larger than 1 MiB") {
				t.Errorf("error after %d pieces is %v", n, err)
			}
			if shown > most {
				t.Errorf("%d bytes were shown", shown)
			}
		})
	}
	for _, limit := range []int{0, -1} { // 16 MiB, and none
		a := newClient(t, Config{Endpoint: llm.Endpoint{MaxReply: limit}}).NewAssembly("test", func(llm.Delta) error { return nil })
		piece := strings.Repeat("x", 1<<20-blockSize)
		for range 16 {
			if err := a.AddText(0, piece); err != nil {
				t.Fatalf("limit %d: %v", limit, err)
			}
		}
		if err := a.AddText(0, strings.Repeat("x", 1<<20)); (err != nil) != (limit == 0) {
			t.Errorf("limit %d: error is %v", limit, err)
		}
	}
}

// TestStreamTimeout: a server that never falls silent reaches the limit of the whole.
func TestStreamTimeout(t *testing.T) {
	for _, c := range []struct {
		limit time.Duration
		want  string
	}{
		{0, "reply beyond the limit: api.example.org: the reply was not complete after 30m0s, which is the limit (stream_timeout)"},
		{time.Minute, "reply beyond the limit: api.example.org: the reply was not complete after 1m0s, which is the limit (stream_timeout)"},
		{-1, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := newClient(t, Config{
				Endpoint: llm.Endpoint{
					StreamTimeout: c.limit,
					HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
						body, w := io.Pipe()
						go func() {
							defer w.Close()
							for range 60 {
								if _, err := io.WriteString(w, "data: {}\n\n"); err != nil {
									return
								}
								select {
								case <-r.Context().Done():
									w.CloseWithError(r.Context().Err())
									return
								case <-time.After(time.Minute + time.Second):
								}
							}
						}()
						return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, nil
					})},
				},
			})
			stream, err := client.postJSON(t.Context(), client.BaseURL().String(), nil, struct{}{})
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			var last error
			for _, err := range client.ReadEvents(stream) {
				last = err
			}
			got := ""
			if last != nil {
				got = last.Error()
			}
			if got != c.want {
				t.Errorf("limit %v: the stream ends with %q, want %q", c.limit, got, c.want)
			}
		})
	}
}

func TestRequestBody(t *testing.T) {
	var sent string
	client := newClient(t, Config{
		Endpoint: llm.Endpoint{
			HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				data, err := io.ReadAll(r.Body)
				sent = string(data)
				return nil, errors.Join(err, io.EOF)
			})},
		},
	})
	post := func(address string, body any) error {
		stream, err := client.postJSON(t.Context(), address, nil, body)
		if err == nil {
			stream.Close()
		}
		return err
	}
	for _, c := range []struct{ address, schema, want string }{
		{"https://x", `{"a": "<b> & c"}`, ""},
		{"https://x", `{"a":`, "bad request: api.example.org: the request cannot be written as JSON; is every schema valid JSON?"},
		{"https://x y", `{}`, "bad request: api.example.org: the address cannot be used: "},
	} {
		sent = ""
		err := post(c.address, map[string]any{"schema": json.RawMessage(c.schema)})
		if c.want == "" {
			if want := `{"schema":{"a":"<b> & c"}}` + "\n"; sent != want {
				t.Errorf("sent %s, want %s", sent, want)
			}
		} else if err == nil || !strings.HasPrefix(err.Error(), c.want) || sent != "" {
			t.Errorf("%s: error is %v, want %s; sent %q", c.schema, err, c.want, sent)
		}
	}
}

func TestLenient(t *testing.T) {
	for in, want := range map[string]struct {
		word  Word
		count Count
	}{
		`"ab"`: {"ab", 0}, `7`: {"7", 7}, `7.0`: {"7.0", 7}, `"7"`: {"7", 7}, `null`: {}, `{"a":1}`: {}, `[1]`: {}, `true`: {}, `-3`: {"-3", 0}, `1e300`: {"1e300", 0},
	} {
		var got struct {
			Word  Word
			Count Count
		}
		if err := json.Unmarshal([]byte(`{"word":`+in+`,"count":`+in+`}`), &got); err != nil || got.Word != want.word || got.Count != want.count {
			t.Errorf("%s is read as %+v, error %v", in, got, err)
		}
	}
}
