package gateway

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"raddle.dev/server"
)

// maxSecurityLog is the size of the security log, in bytes: a larger one becomes the old one, and the old one before is
// removed.
const maxSecurityLog = 4 << 20

// maxOfKind is how many entries of a kind are in the log in a minute, if one caller can cause any number of them.
// Others are counted: no one can push old entries out of the log.
const maxOfKind = 60

// The kinds of entries that one caller can cause at will. Each has its own bound, so that none hides another.
const (
	kindRefusal = iota // of requests and of log-ins
	kindSession        // log-ins and log-outs
	kindAhead          // what is allowed without a question of a run
	countOfKinds
)

// A SecurityEntry is a line of the security log. It never has a token, a code or a cookie.
type SecurityEntry struct {
	Time time.Time `json:"time"`
	// Event is one of log-in, log-in-failed, log-out, refused, granted, token-added and token-removed.
	Event  string `json:"event"`
	Token  string `json:"token,omitempty"`  // the name of the token, if its sender is known
	User   string `json:"user,omitempty"`   // as a proxy names it
	From   string `json:"from,omitempty"`   // address of the connection
	Method string `json:"method,omitempty"` // of the request
	Path   string `json:"path,omitempty"`   // without its query
	Status int    `json:"status,omitempty"` // of the answer
	Code   string `json:"code,omitempty"`   // why it was refused
	Detail string `json:"detail,omitempty"` // the scopes of a new token; of a grant, the beginning of the question; why the store did not answer

	Run      string `json:"run,omitempty"`      // of a grant
	Question string `json:"question,omitempty"` // of a grant: its id
	Answer   string `json:"answer,omitempty"`   // of a grant: once, always

	More int `json:"more,omitempty"` // how many entries of its kind were left out since the last one
}

// securityLog is the log of who logged in, what was refused and what was granted: one JSON object a line. Processes may
// write it at the same time. It is safe for concurrent use.
type securityLog struct {
	path string

	mu     sync.Mutex
	bounds [countOfKinds]*rate.Limiter
	left   [countOfKinds]int // entries that were left out
}

func openSecurityLog(state string) *securityLog {
	l := &securityLog{path: filepath.Join(state, "serve", "security.jsonl")}
	for kind := range l.bounds {
		l.bounds[kind] = perMinute(maxOfKind)
	}
	return l
}

// SecurityLogPath returns the file of the security log. The older part of it has the suffix .old.
func (t *Tokens) SecurityLogPath() string { return t.log.path }

// newEntry returns an entry about a request.
func newEntry(event string, r *http.Request, e SecurityEntry) SecurityEntry {
	e.Event = event
	e.Method = r.Method
	e.Path = r.URL.Path
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		e.From = host
	}
	if c, ok := server.CallerOf(r.Context()); ok {
		e.Token = c.Name
		if c.User != c.Name {
			e.User = c.User
		}
	}
	if len(e.Path) > maxLoggedPath {
		e.Path = e.Path[:maxLoggedPath]
	}
	return e
}

// maxLoggedPath is the length of the longest path in the log, in bytes.
const maxLoggedPath = 300

// writeRefusal writes that a caller was refused. Other problems with a request are none of the log's.
func (l *securityLog) writeRefusal(r *http.Request, status int, code string) {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusMisdirectedRequest, http.StatusTooManyRequests:
		l.writeBounded(kindRefusal, newEntry("refused", r, SecurityEntry{Status: status, Code: code}))
	}
}

// writeUnavailable writes why the store could not say who the sender of a request is.
func (l *securityLog) writeUnavailable(r *http.Request, why error) {
	l.writeBounded(kindRefusal, newEntry("refused", r, SecurityEntry{Status: http.StatusServiceUnavailable, Code: "store-unavailable", Detail: why.Error()}))
}

// writeFailedLogin writes that a browser could not log in.
func (l *securityLog) writeFailedLogin(r *http.Request, code string) {
	l.writeBounded(kindRefusal, newEntry("log-in-failed", r, SecurityEntry{Status: http.StatusUnauthorized, Code: code}))
}

// writeGrant writes that a caller has allowed something.
func (l *securityLog) writeGrant(r *http.Request, g server.Grant) {
	e := newEntry("granted", r, SecurityEntry{Run: g.Run, Question: g.Question, Answer: g.Answer, Detail: g.What})
	if g.Unasked {
		l.writeBounded(kindAhead, e)
		return
	}
	l.write(e)
}

// writeBounded writes an entry of which a caller can cause any number.
func (l *securityLog) writeBounded(kind int, e SecurityEntry) {
	l.mu.Lock()
	if !l.bounds[kind].Allow() {
		l.left[kind]++
		l.mu.Unlock()
		return
	}
	e.More, l.left[kind] = l.left[kind], 0
	l.mu.Unlock()
	l.write(e)
}

// write writes an entry. That it cannot be written keeps no request from being answered.
func (l *securityLog) write(e SecurityEntry) {
	e.Time = time.Now().UTC()
	text, err := json.Marshal(e)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if info, err := os.Stat(l.path); err == nil && info.Size() > maxSecurityLog {
		_ = os.Rename(l.path, l.path+".old")
	} else if errors.Is(err, fs.ErrNotExist) {
		_ = os.MkdirAll(filepath.Dir(l.path), 0o700)
	}
	file, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = file.Write(append(text, '\n')) // in one piece: others may write too
	_ = file.Close()
}
