// Package webhook takes requests of other programs that fire triggers: POST /hooks/PATH. What a request brings is read
// only when its path is that of a trigger that a person has enabled, and believed only when its sender has proved who it
// is.
package webhook

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/trigger"
	"raddle.dev/server"
)

// Prefix is what the addresses of webhooks begin with.
const Prefix = "/hooks/"

const (
	window   = 5 * time.Minute // how far the time of a request may be off
	listFor  = time.Second     // for how long the triggers of the store are remembered
	senders  = 1000            // whose rates are known at once
	maxID    = 200             // bytes of an id
	perTry   = 2               // requests of one sender to one path in a second, with proof or without
	triesNow = 60              // of them at once
)

// A handler takes the requests. It is safe for concurrent use.
type handler struct {
	process *app.Process
	set     *trigger.Set
	log     *slog.Logger
	clock   func() time.Time

	mu     sync.Mutex // guards the fields below
	list   []trigger.Trigger
	until  time.Time // until which list counts
	limits map[string]*rate.Limiter
}

// NewHandler returns what answers the requests of a service. On a store that keeps no triggers it knows no path.
func NewHandler(s *server.Service, log *slog.Logger) http.Handler {
	set, err := trigger.Open(s.Process())
	if err != nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { refuseRequest(w, errUnknown) })
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &handler{process: s.Process(), set: set, log: log, clock: time.Now, limits: map[string]*rate.Limiter{}}
}

// A refusal is an answer to a request that fires nothing.
type refusal struct {
	status int
	text   string
}

// Error returns what the sender gets.
func (r *refusal) Error() string { return r.text }

// The refusals that say nothing about what the server knows.
var (
	errUnknown  = &refusal{http.StatusNotFound, "not found"}
	errUnproved = &refusal{http.StatusUnauthorized, "the request does not prove who has sent it"}
	errStale    = &refusal{http.StatusUnauthorized, "the time of the request is more than 5 minutes off"}
	errReplay   = &refusal{http.StatusConflict, "the request was sent before, with another id"}
	errReused   = &refusal{http.StatusConflict, "the id was used before, with another body"}
	errTooMany  = &refusal{http.StatusTooManyRequests, "too many requests: try again later"}
	errTooLarge = &refusal{http.StatusRequestEntityTooLarge, "the body is larger than 1 MiB"}
	errNotJSON  = &refusal{http.StatusUnsupportedMediaType, "the request needs the header Content-Type: application/json"}
)

// ServeHTTP fires the trigger of a path, and answers with the run that it starts.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	run, repeated, err := h.takeRequest(w, r)
	var known *refusal
	switch {
	case err == nil:
	case errors.As(err, &known):
		refuseRequest(w, known)
		return
	case failure.IsUnavailable(err) || journal.IsUnavailable(err):
		w.Header().Set("Retry-After", server.RetryAfter)
		refuseRequest(w, &refusal{http.StatusServiceUnavailable, "the store does not answer: try again later"})
		return
	default:
		h.log.Error("a webhook failed", "path", r.URL.Path, "error", err)
		refuseRequest(w, &refusal{http.StatusInternalServerError, "the server could not do this"})
		return
	}
	status := http.StatusAccepted
	if repeated {
		status = http.StatusOK
	}
	writeAnswer(w, status, map[string]any{"run": run, "repeated": repeated})
}

// refuseRequest writes why a request fires nothing.
func refuseRequest(w http.ResponseWriter, why *refusal) {
	w.Header().Set("Connection", "close") // nothing waits for a body that is not read
	if why.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", server.RetryAfter)
	}
	writeAnswer(w, why.status, map[string]any{"error": why.text})
}

// writeAnswer writes an answer.
func writeAnswer(w http.ResponseWriter, status int, body map[string]any) {
	text, err := json.Marshal(body)
	if err != nil {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}

// takeRequest checks a request and adds its tick. repeated says that the sender has sent it before.
func (h *handler) takeRequest(w http.ResponseWriter, r *http.Request) (run string, repeated bool, err error) {
	ctx := r.Context()
	t, err := h.findTrigger(ctx, r)
	if err != nil {
		return "", false, err
	}
	if !h.allowSender(r, t) {
		return "", false, errTooMany
	}
	body, err := readBody(w, r)
	if err != nil {
		return "", false, err
	}
	proof, err := h.proveSender(r, t, body)
	if err != nil {
		return "", false, err
	}
	if ok, err := h.set.ConfirmFiles(ctx, t); err != nil || !ok {
		h.forgetList()
		if err == nil {
			err = errUnknown
		}
		return "", false, err
	}
	return h.fireTrigger(ctx, t, body, proof)
}

// findTrigger returns the trigger of a request. It reads nothing of the request but its method and its path, which must be
// written in exactly one way.
func (h *handler) findTrigger(ctx context.Context, r *http.Request) (*trigger.Trigger, error) {
	path, ok := strings.CutPrefix(r.URL.Path, Prefix)
	if !ok || r.Method != http.MethodPost || r.URL.EscapedPath() != r.URL.Path {
		return nil, errUnknown
	}
	list, err := h.readList(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if t := list[i]; t.Webhook != nil && t.Webhook.Path == path && t.Status == trigger.On {
			return &t, nil
		}
	}
	return nil, errUnknown
}

// readList returns the triggers of the store as they were at most a moment ago: requests to unknown paths cost no more.
func (h *handler) readList(ctx context.Context) ([]trigger.Trigger, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.clock(); now.After(h.until) {
		list, _, err := h.set.ListAll(ctx)
		if err != nil {
			return nil, err
		}
		h.list = list
		h.until = now.Add(listFor)
	}
	return h.list, nil
}

// forgetList lets the next request read the triggers again.
func (h *handler) forgetList() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = time.Time{}
}

// allowSender reports whether a sender may send a request to the path of a trigger now.
func (h *handler) allowSender(r *http.Request, t *trigger.Trigger) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	key := t.ID() + " " + host
	h.mu.Lock()
	defer h.mu.Unlock()
	limit := h.limits[key]
	if limit == nil {
		if len(h.limits) >= senders {
			clear(h.limits)
		}
		limit = rate.NewLimiter(perTry, triesNow)
		h.limits[key] = limit
	}
	return limit.AllowN(h.clock(), 1)
}

// readBody reads the body of a request: JSON in UTF-8, at most 1 MiB.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	isJSON := kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")
	if err != nil || !isJSON || charset != "" && charset != "utf-8" || r.Header.Get("Content-Encoding") != "" {
		return nil, errNotJSON
	}
	if r.ContentLength > trigger.MaxData {
		return nil, errTooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, trigger.MaxData))
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, errTooLarge
	case err != nil:
		return nil, &refusal{http.StatusBadRequest, "the body cannot be read to its end"}
	}
	return body, nil
}

// fireTrigger adds the tick of a request that has proved who it is from.
func (h *handler) fireTrigger(ctx context.Context, t *trigger.Trigger, body []byte, p proof) (run string, repeated bool, err error) {
	data, err := parseBody(body)
	if err != nil {
		return "", false, err
	}
	sum := sha256.Sum256(body)
	in := trigger.Input{Digest: hex.EncodeToString(sum[:]), Arrival: rand.Text()}
	tick, err := t.NewTick(p.key, h.clock(), data, in)
	if err != nil {
		return "", false, &refusal{http.StatusUnprocessableEntity, err.Error()}
	}
	if p.mark != "" {
		seen := journal.Tick{Trigger: t.ID(), Key: p.mark, Time: tick.Time, State: trigger.Seen, Note: p.key}
		stored, err := h.set.Store.AddTicks(ctx, nil, []journal.Tick{seen})
		if err != nil {
			return "", false, err
		}
		if stored[0].Note != p.key {
			return "", false, errReplay
		}
	}
	stored, err := h.set.Store.AddTicks(ctx, nil, []journal.Tick{tick})
	if err != nil {
		return "", false, err
	}
	was := trigger.InputOf(&stored[0])
	if was.Digest != in.Digest {
		return "", false, errReused
	}
	return stored[0].Run, was.Arrival != in.Arrival, nil
}

// parseBody reads a body of JSON. An object that has one key twice is refused: two readers of it could disagree.
func parseBody(body []byte) (*jsonvalue.Object, error) {
	v, err := jsonvalue.Parse(body)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "the body is not JSON: " + err.Error()}
	}
	o, ok := v.(*jsonvalue.Object)
	if !ok {
		return nil, &refusal{http.StatusBadRequest, "the body must be an object"}
	}
	if key, twice := findTwice(body); twice {
		return nil, &refusal{http.StatusBadRequest, "an object in the body has the key " + key + " twice"}
	}
	return o, nil
}

// findTwice returns a key that an object of a text in JSON has twice.
func findTwice(text []byte) (key string, twice bool) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	type level struct {
		keys  map[string]bool // nil: a list
		value bool            // the next token of an object is a value
	}
	var open []level
	for {
		token, err := d.Token()
		if err != nil {
			return "", false
		}
		last := len(open) - 1
		switch {
		case token == json.Delim('}') || token == json.Delim(']'):
			open = open[:last]
			continue
		case last >= 0 && open[last].keys != nil && !open[last].value:
			name, _ := token.(string)
			if open[last].keys[name] {
				return name, true
			}
			open[last].keys[name] = true
			open[last].value = true
			continue
		}
		if last >= 0 {
			open[last].value = false
		}
		switch token {
		case json.Delim('{'):
			open = append(open, level{keys: map[string]bool{}})
		case json.Delim('['):
			open = append(open, level{})
		}
	}
}
