package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/trigger"
	"raddle.dev/server"
)

// now is the time of all requests of the tests.
var now = time.Unix(1_790_000_000, 0)

const secret = "it's a secret of the tests"

const hooks = `
name: triage
start: done
nodes: {done: {type: end, output: done}}
triggers:
  - webhook: github/issues
    name: github
    secret: ${HOOK_SECRET}
    signature: {header: X-Hub-Signature-256, prefix: "sha256="}
    id: X-GitHub-Delivery
    map: {prompt: "Look at {{issue.title}}", state: {number: "{{issue.number}}"}}
  - webhook: timed
    name: timed
    secret: ${HOOK_SECRET}
    signature: {header: X-Signature, encoding: base64, prefix: "v1,", timestamp: X-Time, signed: "{{id}}.{{timestamp}}.{{body}}"}
    id: X-Id
  - webhook: listed
    name: listed
    secret: ${HOOK_SECRET}
    signature: {header: "Stripe-Signature#v1", timestamp: "Stripe-Signature#t"}
  - webhook: token
    name: token
    token: ${HOOK_TOKEN}
    id: X-Id
  - webhook: own-header
    name: own
    token: ${HOOK_TOKEN}
    token_header: X-Gitlab-Token
  - webhook: unset
    name: unset
    token: ${HOOK_UNSET}
`

// A hall is a handler of webhooks with its triggers.
type hall struct {
	*testing.T
	*handler
	agent string // its file
}

func newHall(t *testing.T) *hall {
	t.Helper()
	home := t.TempDir()
	h := &hall{T: t, agent: filepath.Join(home, ".config", "raddle", "agents", "triage", "graph.yaml")}
	if err := os.MkdirAll(filepath.Dir(h.agent), 0o700); err != nil {
		t.Fatal(err)
	}
	h.writeAgent(hooks)
	p, err := app.Open(app.Options{Work: t.TempDir(), Environ: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "RADDLE_BOX=false", "HOOK_SECRET=" + secret, "HOOK_TOKEN=open-sesame"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	s, err := server.New(p, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(t.Context()) })
	h.handler = NewHandler(s, nil).(*handler)
	h.clock = func() time.Time { return now }
	h.enableAgent()
	return h
}

// writeAgent writes the file of the agent.
func (h *hall) writeAgent(text string) {
	h.Helper()
	if err := os.WriteFile(h.agent, []byte(text), 0o600); err != nil {
		h.Fatal(err)
	}
}

// enableAgent enables the triggers of the agent.
func (h *hall) enableAgent() {
	h.Helper()
	offer, err := trigger.ReadOffer(h.process, "triage")
	if err == nil {
		_, err = h.set.EnableOffer(h.Context(), offer, trigger.Budget{}, "ada")
	}
	if err != nil {
		h.Fatal(err)
	}
	h.forgetList()
}

// An answer is what a request gets.
type answer struct {
	Status   int    `json:"-"`
	Run      string `json:"run"`
	Repeated bool   `json:"repeated"`
	Error    string `json:"error"`
}

// sendRequest sends a request with headers, each NAME: VALUE.
func (h *hall) sendRequest(path, body string, headers ...string) (a answer) {
	h.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if r.Header.Get(name) != "" && name != "Content-Type" {
			r.Header.Add(name, value)
		} else {
			r.Header.Set(name, value)
		}
	}
	return h.readAnswer(r)
}

// readAnswer returns what a request gets.
func (h *hall) readAnswer(r *http.Request) (a answer) {
	h.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		h.Fatalf("the answer is %s: %v", w.Body, err)
	}
	a.Status = w.Code
	return a
}

// signText returns the signature of a text.
func signText(text string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// githubHeaders returns the headers of a delivery.
func githubHeaders(id, body string) []string {
	return []string{"X-GitHub-Delivery: " + id, "X-Hub-Signature-256: sha256=" + hex.EncodeToString(signText(body))}
}

// timedHeaders returns the headers of a request with a time.
func timedHeaders(id, body string, at time.Time) []string {
	stamp := fmt.Sprint(at.Unix())
	return []string{"X-Id: " + id, "X-Time: " + stamp, "X-Signature: v1," + base64.StdEncoding.EncodeToString(signText(id+"."+stamp+"."+body))}
}

// waitingTicks returns the ticks that would start runs.
func (h *hall) waitingTicks() int {
	h.Helper()
	list, err := h.set.Store.ListTicks(h.Context(), "", 1000)
	if err != nil {
		h.Fatal(err)
	}
	n := 0
	for _, t := range list {
		if t.State == "waiting" {
			n++
		}
	}
	return n
}

const issue = `{"issue": {"title": "It breaks", "number": 7}}`

// Requests of senders as they sign them: a retry with the same id is answered with the same run.
func TestDeliveries(t *testing.T) {
	h := newHall(t)
	first := h.sendRequest("/hooks/github/issues", issue, githubHeaders("d1", issue)...)
	if first.Status != http.StatusAccepted || first.Run == "" || first.Repeated {
		t.Fatalf("the first delivery: %+v", first)
	}
	if again := h.sendRequest("/hooks/github/issues", issue, githubHeaders("d1", issue)...); again.Status != http.StatusOK || again.Run != first.Run || !again.Repeated {
		t.Errorf("the same delivery: %+v", again)
	}
	list, err := h.set.Store.ListTicks(t.Context(), "triage/github", 10)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if in := trigger.InputOf(&list[i]); list[i].State == "waiting" && (!strings.HasPrefix(in.Prompt, "Look at <foreign>It breaks</foreign>\n") || in.State == nil) {
			t.Errorf("the input is %+v", in)
		}
	}
	for name, a := range map[string]answer{
		"timed":       h.sendRequest("/hooks/timed", "{}", timedHeaders("1", "{}", now)...),
		"almost old":  h.sendRequest("/hooks/timed", "{}", timedHeaders("2", "{}", now.Add(-299*time.Second))...),
		"fast clock":  h.sendRequest("/hooks/timed", "{}", timedHeaders("3", "{}", now.Add(299*time.Second))...),
		"listed":      h.sendRequest("/hooks/listed", "{}", fmt.Sprintf("Stripe-Signature: t=%d,v1=%x,v1=%x", now.Unix(), "old secret", signText(fmt.Sprintf("%d.{}", now.Unix())))),
		"token":       h.sendRequest("/hooks/token", "{}", "Authorization: Bearer open-sesame", "X-Id: a"),
		"own header":  h.sendRequest("/hooks/own-header", "{}", "X-Gitlab-Token: open-sesame"),
		"its charset": h.sendRequest("/hooks/own-header", "{}", "X-Gitlab-Token: open-sesame", "Content-Type: application/json; charset=UTF-8"),
		"a kind of":   h.sendRequest("/hooks/own-header", "{}", "X-Gitlab-Token: open-sesame", "Content-Type: application/vnd.x+json"),
	} {
		if a.Status != http.StatusAccepted || a.Run == "" {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if n := h.waitingTicks(); n != 9 {
		t.Errorf("there are %d ticks", n)
	}
}

// What others may try. None of it fires, and none says more than it must.
func TestAttacks(t *testing.T) {
	h := newHall(t)
	if a := h.sendRequest("/hooks/github/issues", issue, githubHeaders("d1", issue)...); a.Status != http.StatusAccepted {
		t.Fatalf("%+v", a)
	}
	if a := h.sendRequest("/hooks/timed", "{}", timedHeaders("t1", "{}", now)...); a.Status != http.StatusAccepted {
		t.Fatalf("%+v", a)
	}
	other := `{"issue": {"title": "Delete all", "number": 7}}`
	twice := `{"issue": {"title": "a", "number": 1}, "issue": {"title": "b", "number": 2}}`
	deepTwice := `{"issue": {"title": "a", "title": "b", "number": 1}, "list": [1, {"x": 1}, {"x": 2}]}`
	big := `{"a": "` + strings.Repeat("x", trigger.MaxData) + `"}`
	noID := githubHeaders("", issue)[1:]
	for name, c := range map[string]struct {
		got  answer
		want int
	}{
		"replay with another id":       {h.sendRequest("/hooks/github/issues", issue, githubHeaders("d2", issue)...), 409},
		"id with another body":         {h.sendRequest("/hooks/github/issues", other, githubHeaders("d1", other)...), 409},
		"signature of another body":    {h.sendRequest("/hooks/github/issues", other, githubHeaders("d3", issue)...), 401},
		"no signature":                 {h.sendRequest("/hooks/github/issues", issue, "X-GitHub-Delivery: d4"), 401},
		"empty signature":              {h.sendRequest("/hooks/github/issues", issue, "X-GitHub-Delivery: d4", "X-Hub-Signature-256: sha256="), 401},
		"half a signature":             {h.sendRequest("/hooks/github/issues", issue, "X-GitHub-Delivery: d4", "X-Hub-Signature-256: sha256="+hex.EncodeToString(signText(issue)[:16])), 401},
		"no prefix":                    {h.sendRequest("/hooks/github/issues", issue, "X-GitHub-Delivery: d4", "X-Hub-Signature-256: "+hex.EncodeToString(signText(issue))), 401},
		"two signatures":               {h.sendRequest("/hooks/github/issues", issue, append(githubHeaders("d4", issue), "X-Hub-Signature-256: sha256=00")...), 401},
		"no id":                        {h.sendRequest("/hooks/github/issues", issue, noID...), 401},
		"long id":                      {h.sendRequest("/hooks/github/issues", issue, githubHeaders(strings.Repeat("d", 201), issue)...), 401},
		"signature of a token":         {h.sendRequest("/hooks/token", "{}", githubHeaders("d5", "{}")...), 401},
		"stale":                        {h.sendRequest("/hooks/timed", "{}", timedHeaders("t2", "{}", now.Add(-301*time.Second))...), 401},
		"from the future":              {h.sendRequest("/hooks/timed", "{}", timedHeaders("t3", "{}", now.Add(301*time.Second))...), 401},
		"another time than the signed": {h.sendRequest("/hooks/timed", "{}", append(timedHeaders("t4", "{}", now)[:1], "X-Time: 1", timedHeaders("t4", "{}", now)[2])...), 401},
		"another id than the signed":   {h.sendRequest("/hooks/timed", "{}", append([]string{"X-Id: t9"}, timedHeaders("t1", "{}", now)[1:]...)...), 401},
		"time that is no number":       {h.sendRequest("/hooks/timed", "{}", "X-Id: t5", "X-Time: soon", "X-Signature: v1,"+base64.StdEncoding.EncodeToString(signText("t5.soon.{}"))), 401},
		"time beyond all":              {h.sendRequest("/hooks/timed", "{}", "X-Id: t6", "X-Time: 9223372036854775807", "X-Signature: v1,"+base64.StdEncoding.EncodeToString(signText("t6.9223372036854775807.{}"))), 401},
		"wrong token":                  {h.sendRequest("/hooks/token", "{}", "Authorization: Bearer open-sesam", "X-Id: b"), 401},
		"token without its kind":       {h.sendRequest("/hooks/token", "{}", "Authorization: open-sesame", "X-Id: b"), 401},
		"two tokens":                   {h.sendRequest("/hooks/token", "{}", "Authorization: Bearer open-sesame", "Authorization: Bearer x", "X-Id: b"), 401},
		"no token where none is set":   {h.sendRequest("/hooks/unset", "{}", "Authorization: Bearer "), 401},
		"key twice":                    {h.sendRequest("/hooks/github/issues", twice, githubHeaders("d6", twice)...), 400},
		"key twice further inside":     {h.sendRequest("/hooks/github/issues", deepTwice, githubHeaders("d7", deepTwice)...), 400},
		"no JSON":                      {h.sendRequest("/hooks/github/issues", "{", githubHeaders("d8", "{")...), 400},
		"a list":                       {h.sendRequest("/hooks/github/issues", "[]", githubHeaders("d9", "[]")...), 400},
		"nothing":                      {h.sendRequest("/hooks/github/issues", "", githubHeaders("d10", "")...), 400},
		"lacks a name":                 {h.sendRequest("/hooks/github/issues", "{}", githubHeaders("d11", "{}")...), 422},
		"too deep":                     {h.sendRequest("/hooks/token", strings.Repeat(`{"a":`, 20_000), "Authorization: Bearer open-sesame", "X-Id: deep"), 400},
		"huge":                         {h.sendRequest("/hooks/github/issues", big, githubHeaders("d12", big)...), 413},
		"text":                         {h.sendRequest("/hooks/github/issues", issue, append(githubHeaders("d13", issue), "Content-Type: text/plain")...), 415},
		"a form":                       {h.sendRequest("/hooks/github/issues", issue, append(githubHeaders("d13", issue), "Content-Type: application/x-www-form-urlencoded")...), 415},
		"another charset":              {h.sendRequest("/hooks/github/issues", issue, append(githubHeaders("d13", issue), "Content-Type: application/json; charset=utf-7")...), 415},
		"packed":                       {h.sendRequest("/hooks/github/issues", issue, append(githubHeaders("d13", issue), "Content-Encoding: gzip")...), 415},
		"unknown":                      {h.sendRequest("/hooks/nothing", issue, githubHeaders("d14", issue)...), 404},
		"a slash more":                 {h.sendRequest("/hooks/github/issues/", issue, githubHeaders("d14", issue)...), 404},
		"two slashes":                  {h.sendRequest("/hooks/github//issues", issue, githubHeaders("d14", issue)...), 404},
		"a dot":                        {h.sendRequest("/hooks/github/./issues", issue, githubHeaders("d14", issue)...), 404},
		"up and down":                  {h.sendRequest("/hooks/x/../github/issues", issue, githubHeaders("d14", issue)...), 404},
		"a slash that is written":      {h.sendRequest("/hooks/github%2fissues", issue, githubHeaders("d14", issue)...), 404},
		"a letter that is written":     {h.sendRequest("/hooks/git%68ub/issues", issue, githubHeaders("d14", issue)...), 404},
		"other letters":                {h.sendRequest("/hooks/GitHub/Issues", issue, githubHeaders("d14", issue)...), 404},
		"a semicolon":                  {h.sendRequest("/hooks/github/issues;x", issue, githubHeaders("d14", issue)...), 404},
		"nothing at all":               {h.sendRequest("/hooks/", issue, githubHeaders("d14", issue)...), 404},
		"the id of a trigger":          {h.sendRequest("/hooks/triage/github", issue, githubHeaders("d14", issue)...), 404},
		"huge where nothing is":        {h.sendRequest("/hooks/nothing", big), 404},
	} {
		if c.got.Status != c.want || c.got.Run != "" || strings.Contains(c.got.Error, "sesame") || strings.Contains(c.got.Error, "HOOK") {
			t.Errorf("%s: %+v, want %d", name, c.got, c.want)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodHead + "X", http.MethodOptions} {
		r := httptest.NewRequest(method, "/hooks/github/issues", strings.NewReader(issue))
		if a := h.readAnswer(r); a.Status != http.StatusNotFound {
			t.Errorf("%s: %+v", method, a)
		}
	}
	if n := h.waitingTicks(); n != 2 {
		t.Errorf("there are %d ticks", n)
	}
}

// A body is not read before it is known that there is a trigger, and of one that is too large no more than must be.
func TestBodiesAreNotRead(t *testing.T) {
	h := newHall(t)
	for path, most := range map[string]int{"/hooks/nothing": 0, "/hooks/token": trigger.MaxData + 1} {
		body := &counter{}
		r := httptest.NewRequest(http.MethodPost, path, body)
		r.ContentLength = -1
		r.Header.Set("Content-Type", "application/json")
		if a := h.readAnswer(r); a.Status < 400 || body.read > most {
			t.Errorf("%s: %d bytes were read: %+v", path, body.read, a)
		}
	}
}

// A counter is a body without an end.
type counter struct{ read int }

func (c *counter) Read(p []byte) (int, error) {
	n := min(len(p), trigger.MaxData+1-c.read)
	if n == 0 {
		n = 1
	}
	c.read += n
	for i := range n {
		p[i] = ' '
	}
	return n, nil
}

// A trigger that is paused, off or disabled is as unknown as one that never was.
func TestDisabledHooksAreUnknown(t *testing.T) {
	h := newHall(t)
	if _, err := h.set.PauseAll(t.Context(), "triage/github"); err != nil {
		t.Fatal(err)
	}
	h.forgetList()
	want := h.sendRequest("/hooks/nothing", issue)
	if got := h.sendRequest("/hooks/github/issues", issue, githubHeaders("d1", issue)...); got != want {
		t.Errorf("a paused one: %+v, want %+v", got, want)
	}
	h.writeAgent(hooks + "# changed\n")
	if got := h.sendRequest("/hooks/token", "{}", "Authorization: Bearer open-sesame", "X-Id: a"); got != want {
		t.Errorf("one whose file has changed: %+v, want %+v", got, want)
	}
	if _, err := h.set.DisableAll(t.Context(), "triage"); err != nil {
		t.Fatal(err)
	}
	h.forgetList()
	if got := h.sendRequest("/hooks/timed", "{}", timedHeaders("t", "{}", now)...); got != want {
		t.Errorf("a disabled one: %+v, want %+v", got, want)
	}
	if n := h.waitingTicks(); n != 0 {
		t.Errorf("there are %d ticks", n)
	}
}

// A sender that tries too often is refused, and later not.
func TestRateOfOneSender(t *testing.T) {
	h := newHall(t)
	refused := 0
	for range triesNow + 10 {
		if a := h.sendRequest("/hooks/token", "{}", "Authorization: Bearer wrong", "X-Id: a"); a.Status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused != 10 {
		t.Errorf("%d requests were refused", refused)
	}
	r := httptest.NewRequest(http.MethodPost, "/hooks/token", strings.NewReader("{}"))
	r.RemoteAddr = "203.0.113.9:1234"
	if a := h.readAnswer(r); a.Status == http.StatusTooManyRequests {
		t.Errorf("another sender pays for it: %+v", a)
	}
	h.clock = func() time.Time { return now.Add(time.Minute) }
	if a := h.sendRequest("/hooks/token", "{}", "Authorization: Bearer open-sesame", "X-Id: a"); a.Status != http.StatusAccepted {
		t.Errorf("a minute later: %+v", a)
	}
}
