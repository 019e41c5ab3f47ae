package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"raddle.dev/internal/process/trigger"
)

// A proof is what is known of a request whose sender has proved who it is.
type proof struct {
	// key names the tick: the same for a request that is sent again.
	key string

	// mark names what was signed; "": the request has a token, which says nothing about its content.
	mark string
}

// proveSender checks that a request comes from who has the secret or the token of a trigger.
func (h *handler) proveSender(r *http.Request, t *trigger.Trigger, body []byte) (p proof, err error) {
	w := t.Webhook
	id := ""
	if w.ID != "" {
		list := readHeader(r, w.ID)
		if len(list) != 1 || len(list[0]) > maxID || strings.ContainsFunc(list[0], func(c rune) bool { return c <= ' ' || c > '~' }) {
			return p, errUnproved
		}
		id = list[0]
		p.key = "id:" + id
	}
	if w.Token != "" {
		if !h.hasToken(r, t) {
			return p, errUnproved
		}
		if p.key == "" {
			p.key = "request:" + rand.Text()
		}
		return p, nil
	}
	sum, err := h.checkSignature(r, t, id, body)
	if err != nil {
		return p, err
	}
	p.mark = "signature:" + hex.EncodeToString(sum)
	if p.key == "" {
		p.key = "signed:" + hex.EncodeToString(sum)
	}
	return p, nil
}

// readSecret returns the value of the variable of a trigger; "" if it is not set, which no request can prove.
func (h *handler) readSecret(t *trigger.Trigger, name string) string {
	value, _ := h.process.LookupVariable(name)
	if value == "" {
		h.log.Error("a webhook cannot be answered: set the variable of the environment of the server", "trigger", t.ID(), "variable", name)
	}
	return value
}

// hasToken reports whether a request has the token of a trigger. The time that it takes says nothing about the token.
func (h *handler) hasToken(r *http.Request, t *trigger.Trigger) bool {
	want := h.readSecret(t, t.Webhook.Token)
	name := t.Webhook.TokenHeader
	if name == "" {
		name = "Authorization"
	}
	list := readHeader(r, name)
	if want == "" || len(list) != 1 {
		return false
	}
	given := list[0]
	if t.Webhook.TokenHeader == "" {
		kind, rest, _ := strings.Cut(given, " ")
		if !strings.EqualFold(kind, "Bearer") {
			return false
		}
		given = rest
	}
	a := sha256.Sum256([]byte(given))
	b := sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// checkSignature returns the signature that a request should have, if it has it and its time is near enough.
func (h *handler) checkSignature(r *http.Request, t *trigger.Trigger, id string, body []byte) ([]byte, error) {
	s := t.Webhook.Signature
	secret := h.readSecret(t, t.Webhook.Secret)
	given := readHeader(r, s.Header)
	if secret == "" || len(given) == 0 {
		return nil, errUnproved
	}
	stamp := ""
	if s.Timestamp != "" {
		list := readHeader(r, s.Timestamp)
		if len(list) != 1 {
			return nil, errUnproved
		}
		stamp = list[0]
	}
	mac := hmac.New(sha256.New, []byte(secret))
	// one pass: what it has put in is not looked at again
	_, _ = strings.NewReplacer("{{timestamp}}", stamp, "{{id}}", id, "{{body}}", string(body)).WriteString(mac, s.Signed)
	want := mac.Sum(nil)
	matches := 0
	for _, text := range given {
		text, ok := strings.CutPrefix(text, s.Prefix)
		if !ok {
			continue
		}
		sum, err := decodeSum(text, s.Encoding)
		if err == nil {
			matches |= subtle.ConstantTimeCompare(sum, want)
		}
	}
	if matches == 0 {
		return nil, errUnproved
	}
	if s.Timestamp != "" && !isNear(stamp, h.clock()) {
		return nil, errStale
	}
	return want, nil
}

// decodeSum reads a signature.
func decodeSum(text, encoding string) ([]byte, error) {
	if encoding == "base64" {
		return base64.StdEncoding.DecodeString(text)
	}
	return hex.DecodeString(text)
}

// isNear reports whether a time in seconds since 1970 is now, more or less.
func isNear(text string, now time.Time) bool {
	seconds, err := strconv.ParseInt(text, 10, 64)
	const most = 1 << 40 // beyond what a Time can subtract
	if err != nil || seconds < 0 || seconds > most {
		return false
	}
	off := now.Sub(time.Unix(seconds, 0))
	return off <= window && off >= -window
}

// readHeader returns the values of a header; of NAME#PART those of PART in a list of PART=VALUE. A header that a request
// has twice has none: two readers of it could disagree.
func readHeader(r *http.Request, name string) (values []string) {
	name, part, hasPart := strings.Cut(name, "#")
	all := r.Header.Values(name)
	switch {
	case len(all) != 1:
		return nil
	case !hasPart:
		return all
	}
	for entry := range strings.SplitSeq(all[0], ",") {
		if key, value, ok := strings.Cut(strings.TrimSpace(entry), "="); ok && key == part {
			values = append(values, value)
		}
	}
	return values
}
