// Package redis keeps journals, and the entries of package memory, on a Redis server, which processes on several
// machines may use at the same time. It is tested with Redis 7.
//
// Every change is one Lua script, which the server runs as a whole: an append compares the
// number of the newest record, adds the records and updates the listing, or does nothing.
// If the connection is lost before the reply arrives, the append is sent again under the
// same mark, which is stored in its records: the script recognizes what it has already
// stored. So an append is neither stored twice nor reported as failed after it was stored.
//
// # What the server must promise
//
// Redis keeps its data in memory, and what is left after a crash depends on its
// configuration. With "appendonly yes" and "appendfsync always", records that Append has
// stored survive a crash of the server and of its machine. With "appendfsync everysec", the
// default of "appendonly yes", they survive a crash of the server, and a crash of the machine
// may lose those of the last second. With snapshots alone ("save"), a crash loses everything
// since the last snapshot, and without either it loses all journals. What is lost is the end
// of the history, across all threads: each thread that is left has no gap, but a run whose
// newest records are lost makes their effects again. A replica that is promoted may lack
// records too, because Redis replicates after it has replied.
//
// Open refuses a server that may remove keys when its memory is full: it needs
// "maxmemory-policy noeviction", or no limit of memory.
//
// # Clusters
//
// All keys begin with the hash tag {raddle}: they are in one slot, so that a script may use
// all of them, and all journals are on one node of a cluster. This package talks to the one
// server that the URL names. On a cluster this must be the node that has the slot; another
// node, or one that has lost the slot, refuses, and the error says so. To use several
// servers, give each its own runs.
package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	client "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"raddle.dev/graph/journal"
)

// Store is a journal.Store on a server. It is safe for concurrent use. Other processes, and
// other Stores of this process, may use the server at the same time.
//
// An operation whose context is cancelled ends before its next request; a request that was
// sent runs to its end. If the connection is lost, or the server is not ready, an operation
// tries again for ten seconds before it fails, with an error that journal.MarkUnavailable has marked.
//
// An iterator reads its records a page at a time: the consumer may be slow, and may use the
// Store. Read yields what the thread held when the loop began; if a Prune deletes some of it
// meanwhile, the iteration ends with an error, not with a gap.
type Store struct {
	db       *client.Client
	address  string // without user and password
	password string
	patience time.Duration
}

var _ journal.Store = (*Store)(nil)

const (
	format      = "3"    // of the keys and records, in keyFormat; in 1, threads had no lines, and in 2 lines did not say what waits
	defaultPort = "6379" // of a URL without one
	dialTimeout = 5 * time.Second
	timeout     = 20 * time.Second // of a request, with the largest values
	patience    = 10 * time.Second // for a lost connection, and for a server that is not ready
	firstPause  = 5 * time.Millisecond
	lastPause   = 250 * time.Millisecond
)

// Address returns the URL of a store without its user and password, and with its port and
// the number of its database: it names the store to people, in one form for each. The error
// says what is wrong with the URL and has no part of it.
func Address(storeURL string) (string, error) {
	_, address, err := parseURL(storeURL)
	return address, err
}

// errURL has no part of the URL: a typing error may have moved the password anywhere in it.
var errURL = errors.New("this is not the URL of a Redis server: write redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE], or rediss:// for TLS; write special characters of a password as %XX")

// parseURL returns the options of the client and the address without user and password.
func parseURL(storeURL string) (*client.Options, string, error) {
	u, err := url.Parse(storeURL)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Hostname() == "" {
		return nil, "", errURL
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, "", errors.New("the URL of a Redis server has no options here: remove what begins with ? or #")
	}
	database := cmp.Or(strings.TrimPrefix(u.Path, "/"), "0")
	number, err := strconv.ParseUint(database, 10, 31)
	if err != nil {
		return nil, "", errors.New("the path of the URL must be the number of a database, such as redis://HOST/0")
	}
	password, ok := u.User.Password()
	if u.User != nil && (!ok || password == "") {
		return nil, "", errors.New("the URL names a user without a password: write redis://:PASSWORD@HOST, or redis://USER:PASSWORD@HOST")
	}
	o := &client.Options{
		Addr: net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), defaultPort)), DB: int(number),
		Username: u.User.Username(), Password: password,
		MaxRetries:    -1, // retryWhileLost repeats what may be repeated
		DialerRetries: 1, DialTimeout: dialTimeout, ReadTimeout: timeout, WriteTimeout: timeout,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if u.Scheme == "rediss" {
		o.TLSConfig = &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	}
	return o, fmt.Sprintf("%s://%s/%d", u.Scheme, o.Addr, number), nil
}

// Open connects to the server of a URL: redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE], or
// rediss:// for TLS with a certificate that this machine trusts. It writes nothing, except in a database of an older
// version, which it changes: programs of that version append nothing to it any more.
//
// Open refuses a server that may remove journals when its memory is full, and a database
// that a newer version of this package has written to. No error has the password.
func Open(storeURL string) (*Store, error) {
	o, address, err := parseURL(storeURL)
	if err != nil {
		return nil, fmt.Errorf("redis: open: %w", err)
	}
	s := &Store{db: client.NewClient(o), address: address, password: o.Password, patience: patience}
	older, err := s.checkServer()
	if err == nil && older {
		err = s.upgrade(context.Background())
	}
	if err != nil {
		return nil, s.explainError("open", errors.Join(err, s.db.Close()))
	}
	return s, nil
}

// checkServer checks the format and what the server does when its memory is full. It reports whether the database is of
// an older version, or its change has not ended. It waits for a server that is starting, but not for one that cannot be
// reached.
func (s *Store) checkServer() (older bool, err error) {
	ctx := context.Background()
	err = s.retryWhile(ctx, isNotReady, func(ctx context.Context) error {
		pipe := s.db.Pipeline()
		found := pipe.Get(ctx, keyFormat)
		unlined := pipe.Exists(ctx, keyUnlined)
		config := pipe.ConfigGet(ctx, "maxmemory*")
		info := pipe.Info(ctx, "memory")
		_, err := pipe.Exec(ctx)
		if found.Err() != nil {
			err = found.Err()
		} else if isServerError(config.Err()) || isServerError(info.Err()) {
			err = nil // one of them may be forbidden
		}
		if err != nil && !errors.Is(err, client.Nil) {
			return err
		}
		if err := checkFormat(found.Val()); err != nil {
			return err
		}
		memory := config.Val()
		if config.Err() != nil || memory["maxmemory-policy"] == "" {
			memory = readInfo(info.Val())
		}
		older = found.Val() != "" && found.Val() != format || unlined.Val() > 0
		return checkMemory(memory["maxmemory"], memory["maxmemory-policy"])
	})
	return older, err
}

// checkFormat checks the format of a database; "": it has no journals yet.
func checkFormat(found string) error {
	n, err := strconv.Atoi(found)
	switch {
	case found == "" || found == "1" || found == "2" || found == format:
		return nil
	case err != nil:
		return fmt.Errorf("the key %s belongs to another program: name another database", keyFormat)
	}
	return fmt.Errorf("a newer version has written this database (format %d, this one knows %s): update raddle, or name another database", n, format)
}

// checkMemory refuses a server that removes keys when its memory is full.
func checkMemory(limit, policy string) error {
	switch {
	case policy == "noeviction" || limit == "0":
		return nil
	case policy == "":
		return errors.New("the server does not say what it does when its memory is full: allow the user CONFIG GET or INFO")
	}
	return fmt.Errorf("the server may remove journals when its memory is full (maxmemory-policy %s): set maxmemory-policy noeviction, with CONFIG SET and in its configuration file", policy)
}

// readInfo returns the settings of CONFIG GET that are in the reply of INFO memory.
func readInfo(text string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		found[strings.ReplaceAll(name, "_", "-")] = value
	}
	return found
}

// Close closes the connections. Later calls fail, except that closing twice is allowed.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil && !errors.Is(err, client.ErrClosed) {
		return s.explainError("close", err)
	}
	return nil
}

// retryWhileLost runs a request until it gets a reply, the Store's patience has ended or ctx
// is cancelled. The server may run it several times.
func (s *Store) retryWhileLost(ctx context.Context, request func(context.Context) error) error {
	return s.retryWhile(ctx, func(err error) bool { return isLost(err) || isNotReady(err) }, request)
}

// retryWhile runs a request while its error is one that may pass. The request gets a context
// that is never cancelled, because cancelling it would leave open what the server does.
func (s *Store) retryWhile(ctx context.Context, mayPass func(error) bool, request func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	whole := context.WithoutCancel(ctx)
	err := request(whole)
	sent := isLost(err) && !isDial(err)
	for start, pause := time.Now(), firstPause; mayPass(err) && time.Since(start) < s.patience; pause = min(2*pause, lastPause) {
		select {
		case <-ctx.Done():
			return &lostError{err: fmt.Errorf("%w, after: %w", ctx.Err(), err), sent: sent}
		case <-time.After(pause):
		}
		err = request(whole)
		sent = sent || isLost(err) && !isDial(err)
	}
	if mayPass(err) && sent {
		return &lostError{err: err, sent: sent}
	}
	return err
}

// A lostError is the error of a request that got no reply.
type lostError struct {
	err  error
	sent bool // the server may have run it
}

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// isServerError reports whether the server has replied with an error: it has changed nothing.
func isServerError(err error) bool {
	_, ok := errors.AsType[client.Error](err)
	return ok
}

// isLost reports whether a request got no reply.
func isLost(err error) bool {
	return err != nil && !isServerError(err) && !errors.Is(err, client.ErrClosed)
}

// isDial reports whether there was no connection: the server has seen nothing.
func isDial(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "dial" || errors.Is(err, client.ErrPoolTimeout)
}

// isNotReady reports whether the server has refused a request that it will soon accept.
func isNotReady(err error) bool {
	for _, code := range []string{"LOADING", "BUSY", "MASTERDOWN", "TRYAGAIN", "NOREPLICAS", "max number of clients"} {
		if client.HasErrorPrefix(err, code) {
			return true
		}
	}
	return false
}

// mayPass reports whether a call that failed with an error may succeed later. It may have been carried out.
func mayPass(err error) bool {
	if _, ok := errors.AsType[refusal](err); ok {
		return false
	}
	for _, code := range []string{"OOM", "MISCONF", "CLUSTERDOWN"} {
		if client.HasErrorPrefix(err, code) {
			return true
		}
	}
	_, lost := errors.AsType[*lostError](err)
	_, network := errors.AsType[net.Error](err)
	return lost || isNotReady(err) || network || errors.Is(err, client.ErrPoolTimeout) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// A refusal is an error of this package: trying again does not help.
type refusal string

func (e refusal) Error() string { return string(e) }

const (
	errFormat  = refusal("another version of raddle has changed the format of this database meanwhile: update raddle, or name another database")
	errChanged = refusal("the thread was pruned or deleted while it was being read: read it again")
	errDamaged = refusal("the records are incomplete, because another program has changed keys of raddle: restore the database from a copy")
)

// advice says, for the codes of the server's errors, what happened and what to do.
var advice = []struct{ code, text string }{
	{"OOM", "the server's memory is full (maxmemory) and nothing was written: give it more, or remove runs"},
	{"MISCONF", "the server cannot write to its disk, and nothing was written: correct that, and try again"},
	{"NOAUTH", "the server asks for a password: write it into the URL of the store"},
	{"WRONGPASS", "the server does not accept the user or the password: correct the URL of the store"},
	{"NOPERM", "the user may not do what raddle needs: allow scripts, CONFIG GET or INFO, and the keys {raddle}:*"},
	{"READONLY", "this server is a replica, which cannot be written: name the one that it copies"},
	{"MOVED", "this node of a cluster does not have the keys {raddle}:*: name the node that has them"},
	{"CLUSTERDOWN", "the cluster is not complete: repair it, and try again"},
	{"LOADING", "the server is still reading its data: try again when it is ready"},
	{"BUSY", "the server is busy with a script of another program: wait until it is done, and try again"},
}

// explainError adds to an error what was tried, where, and what to do next, and removes the
// password. Conflicts and the ends of contexts do not change.
func (s *Store) explainError(op string, err error) error {
	lost, unsure := errors.AsType[*lostError](err)
	unsure = unsure && lost.sent
	switch {
	case err == nil || errors.Is(err, journal.ErrConflict):
		return err
	case isContextEnd(err) && !unsure && lost != nil: // the context ended while the server was away
		return journal.MarkUnavailable(err)
	case isContextEnd(err) && !unsure:
		return err
	}
	text := ""
	switch {
	case errors.Is(err, client.ErrClosed):
		text = "the store is closed"
	case unsure:
		text = "the connection was lost, and it is not known whether the server has done it: read the journal again"
	case isDial(err):
		text = "no server answers: start it, or correct the URL of the store"
	}
	for _, a := range advice {
		if client.HasErrorPrefix(err, a.code) {
			text = a.text
			break
		}
	}
	if text != "" {
		text += ": "
	}
	text = fmt.Sprintf("redis: %s: %s: %s%v", op, s.address, text, err)
	var explained error = &explainedError{text: text, err: err}
	if s.password != "" && strings.Contains(err.Error(), s.password) {
		explained = errors.New(strings.ReplaceAll(text, s.password, "[redacted]"))
	}
	if mayPass(err) {
		return journal.MarkUnavailable(explained)
	}
	return explained
}

// isContextEnd reports whether a context has ended. A timeout of the network has another error.
func isContextEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// An explainedError has a text for people, and the error below it.
type explainedError struct {
	text string
	err  error
}

func (e *explainedError) Error() string { return e.text }
func (e *explainedError) Unwrap() error { return e.err }
