package chaos

import (
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
)

// A proxy passes connections on to the database, until it is cut. It is safe for concurrent use.
type proxy struct {
	listener net.Listener
	to       string // the address of the database
	served   sync.WaitGroup

	mu   sync.Mutex // guards the fields below
	cut  bool
	open map[net.Conn]bool
}

// openProxy returns a proxy in front of the server of a store, and the URL of the store through it. p is nil if the
// store is a file, or is reached through a socket of this machine: there is no connection to cut.
func openProxy(store string) (p *proxy, through string, err error) {
	u, err := url.Parse(store)
	if err != nil || u.Hostname() == "" || strings.Contains(u.Host, ",") {
		return nil, store, nil
	}
	port := u.Port()
	switch {
	case strings.HasPrefix(u.Scheme, "postgres") && port == "":
		port = "5432"
	case strings.HasPrefix(u.Scheme, "redis") && port == "":
		port = "6379"
	case port == "":
		return nil, store, nil
	}
	p = &proxy{to: net.JoinHostPort(u.Hostname(), port), open: map[net.Conn]bool{}}
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, "", err
	}
	p.served.Go(p.serve)
	u.Host = p.listener.Addr().String()
	return p, u.String(), nil
}

// serve accepts connections until the proxy is closed.
func (p *proxy) serve() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		if !p.admit(c) {
			_ = c.Close()
			continue
		}
		p.served.Go(func() { p.pass(c) })
	}
}

// admit notes a connection, unless the proxy is cut.
func (p *proxy) admit(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		return false
	}
	p.open[c] = true
	return true
}

// pass copies both ways until one side ends.
func (p *proxy) pass(c net.Conn) {
	defer p.end(c)
	db, err := net.Dial("tcp", p.to)
	if err != nil || !p.admit(db) {
		if err == nil {
			_ = db.Close()
		}
		return
	}
	defer p.end(db)
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{c, db}, {db, c}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			done <- struct{}{}
		}()
	}
	<-done
	_ = c.Close()
	_ = db.Close()
	<-done
}

// end closes and forgets a connection.
func (p *proxy) end(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// setCut ends all connections and refuses new ones, or lets them pass again.
func (p *proxy) setCut(cut bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	if cut {
		for c := range p.open {
			_ = c.Close()
		}
	}
}

// close ends the proxy and its connections.
func (p *proxy) close() {
	if p == nil {
		return
	}
	_ = p.listener.Close()
	p.setCut(true)
	p.served.Wait()
}
