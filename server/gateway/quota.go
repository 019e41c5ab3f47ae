package gateway

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"raddle.dev/server"
)

// TokenLimits bound what the requests of one token may take, so that one program cannot keep others from being served.
// Each zero value means the default.
type TokenLimits struct {
	Requests int // in a minute; 0: 30,000
	Starts   int // runs that are started in a minute; 0: 6,000
	// Streams are requests that are answered at the same time, such as streams of events; 0: 512, at most half of the
	// connections.
	Streams int
}

// The defaults of [TokenLimits].
const (
	DefaultRequests = 30_000
	DefaultStarts   = 6_000
	DefaultStreams  = 512
)

// A quota is what the requests of one token have taken.
type quota struct {
	requests, starts *rate.Limiter
	streams          int // requests that are being answered; the set guards it
}

// A quotaSet has the quotas of all tokens that were used. It is safe for concurrent use.
type quotaSet struct {
	limits TokenLimits

	mu    sync.Mutex
	quota map[string]*quota // by the names of tokens
}

func newQuotaSet(l TokenLimits, connections int) *quotaSet {
	l.Requests = cmp.Or(l.Requests, DefaultRequests)
	l.Starts = cmp.Or(l.Starts, DefaultStarts)
	l.Streams = cmp.Or(l.Streams, max(1, min(DefaultStreams, connections/2)))
	return &quotaSet{limits: l, quota: map[string]*quota{}}
}

// perMinute returns a limiter that allows n events at once, and then n in each minute, evenly.
func perMinute(n int) *rate.Limiter { return rate.NewLimiter(rate.Limit(float64(n)/60), n) }

// find returns the quota of a token. The caller must hold mu.
func (s *quotaSet) find(token string) *quota {
	q := s.quota[token]
	if q == nil {
		q = &quota{requests: perMinute(s.limits.Requests), starts: perMinute(s.limits.Starts)}
		s.quota[token] = q
	}
	return q
}

// enter counts a request of a token. The error is a [*server.QuotaError] if the token has no room for it; otherwise the
// caller must call leave when the request has been answered.
func (s *quotaSet) enter(token string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.find(token)
	if err := takeOne(q.requests, "too-many-requests", fmt.Sprintf("the token %q may send %d requests a minute", token, s.limits.Requests)); err != nil {
		return nil, err
	}
	if q.streams >= s.limits.Streams {
		return nil, &server.QuotaError{Code: "too-many-streams", Detail: fmt.Sprintf("the token %q may have %d requests answered at the same time: end streams of events that you do not read", token, s.limits.Streams), RetryAfter: time.Second}
	}
	q.streams++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		q.streams--
	}, nil
}

// takeStart counts the start of a run.
func (s *quotaSet) takeStart(token string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return takeOne(s.find(token).starts, "too-many-starts", fmt.Sprintf("the token %q may start %d runs a minute", token, s.limits.Starts))
}

// takeOne takes one event from a limiter, or returns an error that says when there is one again.
func takeOne(l *rate.Limiter, code, detail string) error {
	if l.Allow() {
		return nil
	}
	wait := time.Duration((1 - l.Tokens()) / float64(l.Limit()) * float64(time.Second))
	return &server.QuotaError{Code: code, Detail: detail, RetryAfter: max(wait, time.Second)}
}
