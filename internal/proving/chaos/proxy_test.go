package chaos

import (
	"io"
	"net"
	"testing"
)

// TestProxyIsCut passes bytes to a server and back, until it is cut; when the cut is over, new connections pass.
func TestProxyIsCut(t *testing.T) {
	db, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	go func() {
		for {
			c, err := db.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	p, through, err := openProxy("postgres://me:secret@" + db.Addr().String() + "/runs?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	address := p.listener.Addr().String()
	if want := "postgres://me:secret@" + address + "/runs?sslmode=disable"; through != want {
		t.Errorf("%s, want %s", through, want)
	}
	echo := func(c net.Conn) error {
		if _, err := c.Write([]byte("x")); err != nil {
			return err
		}
		_, err := io.ReadFull(c, make([]byte, 1))
		return err
	}
	connect := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	first := connect()
	if err := echo(first); err != nil {
		t.Fatal(err)
	}
	p.setCut(true)
	if echo(first) == nil || echo(connect()) == nil {
		t.Error("bytes pass a connection that is cut")
	}
	p.setCut(false)
	if err := echo(connect()); err != nil {
		t.Errorf("after the cut: %v", err)
	}
}

// TestFilesHaveNoProxy opens none where no connection can be cut.
func TestFilesHaveNoProxy(t *testing.T) {
	for _, store := range []string{"sqlite:/tmp/runs.db", "postgres:///runs?host=/run/postgresql", "postgres://a:1,b:2/runs"} {
		p, through, err := openProxy(store)
		if p != nil || through != store || err != nil {
			t.Errorf("%s: %v, %s, %v", store, p, through, err)
		}
		p.setCut(true)
		p.close()
	}
}
