//go:build unix

package postgres_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/pgtest"
	"raddle.dev/store/postgres"
)

// startPooler starts a pooler in transaction mode in front of a database, with a few sessions of the
// server: each transaction of a client gets the session that has not been used for the longest time.
// It returns the URL of the database through the pooler, without TLS and without a password.
func startPooler(t *testing.T, database string) string {
	t.Helper()
	p := pooler{database: database, sessions: make(chan *pgconn.HijackedConn, 3)}
	for range cap(p.sessions) {
		session, err := p.connect()
		if err != nil {
			t.Fatal(err)
		}
		p.sessions <- session
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	clients.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			clients.Go(func() {
				defer client.Close()
				_ = p.serveClient(client) // it ends with an error when the client closes
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		clients.Wait() // the stores were closed before
		close(p.sessions)
		for session := range p.sessions {
			_ = session.Conn.Close()
		}
	})
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.User, u.Host, u.RawQuery = url.User(pgtest.User), l.Addr().String(), "sslmode=disable"
	return u.String()
}

type pooler struct {
	database string
	sessions chan *pgconn.HijackedConn // those that no client uses
}

func (p *pooler) connect() (*pgconn.HijackedConn, error) {
	c, err := pgconn.Connect(context.Background(), p.database)
	if err != nil {
		return nil, err
	}
	return c.Hijack()
}

// giveBack ends a session that its client has left in the middle of a transaction, as poolers do, and puts another one in its place: the next client
// would run in that transaction.
func (p *pooler) giveBack(session *pgconn.HijackedConn) {
	_ = session.Conn.Close()
	fresh, err := p.connect()
	if err != nil {
		panic("the pooler has lost the server: " + err.Error())
	}
	p.sessions <- fresh
}

// serveClient passes messages between a client and the sessions until the client closes.
func (p *pooler) serveClient(client net.Conn) error {
	b := pgproto3.NewBackend(client, client)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return err
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if err := b.Flush(); err != nil {
		return err
	}
	var session *pgconn.HijackedConn
	defer func() {
		if session != nil {
			p.giveBack(session)
		}
	}()
	for {
		msg, err := b.Receive()
		if err != nil {
			return err
		}
		if _, ends := msg.(*pgproto3.Terminate); ends {
			return nil
		}
		if session == nil {
			session = <-p.sessions
		}
		session.Frontend.Send(msg)
		switch msg.(type) {
		case *pgproto3.Query, *pgproto3.Sync:
		default:
			continue
		}
		status, err := relayAnswer(session.Frontend, b)
		if err != nil {
			return err
		}
		if status == 'I' {
			p.sessions <- session
			session = nil
		}
	}
}

// relayAnswer sends what the client has asked, and passes the answer on. It returns the status of the transaction.
func relayAnswer(server *pgproto3.Frontend, client *pgproto3.Backend) (byte, error) {
	if err := server.Flush(); err != nil {
		return 0, err
	}
	for {
		msg, err := server.Receive()
		if err != nil {
			return 0, err
		}
		client.Send(msg)
		if ready, ok := msg.(*pgproto3.ReadyForQuery); ok {
			return ready.TxStatus, client.Flush()
		}
	}
}

// A pooledStore is a store behind a pooler, which tells a listener nothing: the field hides the method, so that it is no
// [journal.Notices].
type pooledStore struct {
	*postgres.Store
	ListenJobs struct{}
}

// The store needs no session of the server: it passes the suite through a pooler in transaction mode.
func TestExtraPooler(t *testing.T) {
	t.Parallel()
	graphtest.TestStore(t, func(t *testing.T) journal.Store {
		return pooledStore{Store: open(t, startPooler(t, pgtest.NewDatabase(t)))}
	})
}

// A program that prepares statements fails through the pooler of the tests: it is one that shows state in sessions.
func TestExtraPoolerMixesSessions(t *testing.T) {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, startPooler(t, pgtest.NewDatabase(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	pids := map[int]bool{}
	for i := range 6 {
		var pid int
		if err := c.QueryRow(ctx, fmt.Sprint("SELECT pg_backend_pid(), ", i), pgx.QueryExecModeExec).Scan(&pid, nil); err != nil {
			t.Fatal(err)
		}
		pids[pid] = true
	}
	if len(pids) != 3 {
		t.Errorf("%d sessions were used, want 3", len(pids))
	}
	var n int
	for range 3 {
		err = c.QueryRow(ctx, "SELECT $1::int", 1).Scan(&n)
	}
	if err == nil {
		t.Error("a prepared statement was found in another session")
	}
}
