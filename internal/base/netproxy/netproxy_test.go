package netproxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	socks "golang.org/x/net/proxy"
)

// A running is a proxy that serves a test.
type running struct {
	address string
	log     chan Attempt
	stop    context.CancelFunc
	done    chan error
}

// startProxy serves until the test ends.
func startProxy(t testing.TB, p *Proxy) *running {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &running{address: listener.Addr().String(), log: make(chan Attempt, 1000), done: make(chan error, 1)}
	p.Log = func(a Attempt) { r.log <- a }
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		r.done <- p.Serve(ctx, listener)
		close(ended)
	}()
	t.Cleanup(func() {
		r.stop()
		<-ended
	})
	return r
}

// allow returns a judge that allows the destinations that have one of the names, as if a rule named them.
func allow(names ...string) func(context.Context, Destination) Ruling {
	return func(_ context.Context, to Destination) Ruling {
		for _, name := range names {
			if rule := "any host(" + name + ")"; rule == to.narrowestRule() {
				return Ruling{Allowed: true, Named: true, Reason: "the rule " + rule}
			}
		}
		return Ruling{}
	}
}

// proxyTo returns a proxy for which example.com has servers at addresses by its port, and which allows nothing else.
func proxyTo(at map[string]string) *Proxy {
	return &Proxy{
		Judge: allow("example.com"),
		lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
		},
		dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", at[fmt.Sprint(to.Port())])
		},
	}
}

// allowAll is a judge with the rule any host(*), which names nothing.
func allowAll(context.Context, Destination) Ruling { return Ruling{Allowed: true} }

// client returns a client of HTTP that uses the proxy.
func (r *running) client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:             http.ProxyURL(&url.URL{Scheme: "http", Host: r.address}),
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true,
	}}
}

// ask sends bytes to the proxy, and returns all that it answers.
func (r *running) ask(t testing.TB, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("%v after %q", err, answer)
	}
	return string(answer)
}

// startTLS starts a server that does not report handshakes that break off.
func startTLS(t testing.TB, handler http.Handler) *httptest.Server {
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// get returns the body at an address.
func get(t testing.TB, client *http.Client, address string) string {
	t.Helper()
	resp, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func echoHost(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s of %s", r.URL.RequestURI(), r.Host)
}

func TestWaysThroughTheProxy(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.HandlerFunc(echoHost))
	defer plain.Close()
	secure := startTLS(t, http.HandlerFunc(echoHost))
	plainAt, secureAt := plain.Listener.Addr().String(), secure.Listener.Addr().String()
	r := startProxy(t, &Proxy{Judge: allow(plainAt, secureAt)})
	dialer, err := socks.SOCKS5("tcp", r.address, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	over := &http.Client{Transport: &http.Transport{DialContext: dialer.(socks.ContextDialer).DialContext, DisableKeepAlives: true}}
	for _, c := range []struct {
		protocol, url, at string
		client            *http.Client
	}{
		{"http", plain.URL + "/a%2Fb?c;d=%zz", plainAt, r.client()},
		{"connect", secure.URL + "/x", secureAt, r.client()},
		{"socks5", plain.URL + "/y", plainAt, over},
	} {
		u, _, _ := strings.Cut(c.url, c.at)
		if got, want := get(t, c.client, c.url), strings.TrimPrefix(c.url, u+c.at)+" of "+c.at; got != want {
			t.Errorf("%s: %q, want %q", c.protocol, got, want)
		}
		a := <-r.log
		host, port, _ := net.SplitHostPort(c.at)
		if a.Protocol != c.protocol || !a.Allowed || a.Host != host || fmt.Sprint(a.Port) != port || a.Address.String() != c.at ||
			a.Up == 0 || a.Down == 0 || a.Reason != "the rule any host("+c.at+")" {
			t.Errorf("the log has %+v", a)
		}
	}
}

// TestRefusals asks for places that no rule names. Nothing is looked up before the host is allowed.
func TestRefusals(t *testing.T) {
	t.Parallel()
	addresses := map[string]string{
		"local.example": "127.0.0.1", "lan.example": "192.168.1.1", "meta.example": "169.254.169.254", "mapped.example": "::ffff:10.0.0.1",
		"nat64.example": "64:ff9b::a9fe:a9fe", "6to4.example": "2002:7f00:1::", "zone.example": "fe80::1%eth0", "any.example": "0.0.0.0", "v6.example": "::1",
		"multicast.example": "224.0.0.1", "unique.example": "fd00::1",
	}
	var mu sync.Mutex
	var looked []string
	r := startProxy(t, &Proxy{
		Judge: func(_ context.Context, to Destination) Ruling {
			return Ruling{Allowed: !strings.HasPrefix(to.Host, "bad."), Reason: map[bool]string{true: "ask your administrator\r\nX: y"}[to.Host == "bad.example"]}
		},
		lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			mu.Lock()
			defer mu.Unlock()
			looked = append(looked, host)
			if at, ok := addresses[host]; ok {
				return []netip.Addr{netip.MustParseAddr(at)}, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
		dial: func(_ context.Context, at netip.AddrPort) (net.Conn, error) {
			t.Errorf("the proxy connects to %s", at)
			return nil, errors.New("no")
		},
	})
	for _, c := range []struct{ to, status, text string }{
		{"bad.example:443", "403", `connect to bad.example:443: ask your administrator\r\nX: y`},
		{"bad.other:443", "403", "connect to bad.other:443: no rule and no answer allows it; the rule any host(bad.other) does"},
		{"good.example:22", "403", "only the ports 80 and 443 need not be named; the rule any host(good.example:22) allows this one"},
		{"127.0.0.1:443", "403", "it is this machine; only a rule that names it allows that, such as any host(127.0.0.1)"},
		{"localhost:443", "403", "it is this machine"},
		{"a.LOCALHOST.:443", "403", "connect to a.localhost:443: it is this machine"},
		{"[::1]:443", "403", "connect to [::1]:443: it is this machine"},
		{"[::ffff:10.1.2.3]:443", "403", "connect to 10.1.2.3:443: it is in a private network"},
		{"169.254.169.254:80", "403", "in the network of this link"},
		{"[fe80::1%25eth0]:443", "400", "zone"},
		{"2130706433:80", "400", "four decimal numbers"},
		{"0x7f000001:80", "400", "four decimal numbers"},
		{"0177.0.0.1:80", "400", "four decimal numbers"},
		{"127.1:80", "400", "four decimal numbers"},
		{"user@good.example:443", "400", "letters, digits"},
		{"good.example", "400", "it has no port"},
		{"good.example:0", "400", "from 1 to 65535"},
		{"good.example:70000", "400", "from 1 to 65535"},
		{"local.example:443", "403", "connect to local.example, which has the address 127.0.0.1:443: it is this machine; only a rule that names it allows that, such as any host(127.0.0.1)"},
		{"lan.example:443", "403", "private network"},
		{"meta.example:443", "403", "network of this link"},
		{"mapped.example:443", "403", "address 10.0.0.1:443"},
		{"nat64.example:443", "403", "network of this link"},
		{"6to4.example:443", "403", "this machine"},
		{"zone.example:443", "403", "network of this link"},
		{"any.example:443", "403", "this machine"},
		{"v6.example:443", "403", "this machine"},
		{"multicast.example:443", "403", "many receivers"},
		{"unique.example:443", "403", "private network"},
		{"unknown.example:443", "502", "unknown.example cannot be found"},
	} {
		answer := r.ask(t, "CONNECT "+c.to+" HTTP/1.1\r\nHost: x\r\n\r\n")
		line, rest, _ := strings.Cut(answer, "\r\n")
		header, body, _ := strings.Cut(rest, "\r\n\r\n")
		if !strings.HasPrefix(line, "HTTP/1.1 "+c.status+" ") || !strings.Contains(line, c.text) || !strings.Contains(body, c.text) || !strings.Contains(header, "Proxy-Status: raddle; error=") || strings.Contains(header, "\nX: y") {
			if !strings.HasPrefix(line, "HTTP/1.1 400 Bad Request") { // of the server, which refuses it before the proxy sees it
				t.Errorf("CONNECT %s: %q, want %s … %s", c.to, answer, c.status, c.text)
			}
			continue
		}
		if a := <-r.log; a.Allowed || c.status != "502" && (a.Reason == "" || a.Ended != "refused") {
			if c.status != "502" {
				t.Errorf("CONNECT %s: the log has %+v", c.to, a)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if slices.ContainsFunc(looked, func(host string) bool { return strings.HasPrefix(host, "bad.") || strings.HasPrefix(host, "good.") }) {
		t.Errorf("refused hosts were looked up: %q", looked)
	}
}

func TestRefusalOfAPlainRequest(t *testing.T) {
	t.Parallel()
	r := startProxy(t, &Proxy{Judge: allow()})
	for _, c := range []struct{ line, status, text string }{
		{"GET http://example.com/ HTTP/1.1", "403 Forbidden", "the sandbox of raddle does not let this program connect to example.com:80: no rule"},
		{"GET / HTTP/1.1", "400 Bad Request", "this is the proxy of raddle's sandbox"},
		{"GET https://example.com/ HTTP/1.1", "400 Bad Request", "use http://, or CONNECT"},
		{"GET ftp://example.com/ HTTP/1.1", "400 Bad Request", "the scheme ftp is not passed on"},
		{"GET http://a:b@example.com/ HTTP/1.1", "400 Bad Request", "has a user in it"},
		{"GET http://example.com:80:80/ HTTP/1.1", "400 Bad Request", ""},
		{"GET http://1.2.3/ HTTP/1.1", "400 Bad Request", "four decimal numbers"},
	} {
		answer := r.ask(t, c.line+"\r\nHost: other.example\r\n\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 "+c.status+"\r\n") || !strings.Contains(answer, c.text) {
			t.Errorf("%s: %q, want %s … %s", c.line, answer, c.status, c.text)
		}
	}
}

// TestOneLookup gives a name another address with every lookup: the proxy connects to what it has checked.
func TestOneLookup(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(echoHost))
	defer server.Close()
	lookups := 0
	var dialed []netip.AddrPort
	r := startProxy(t, &Proxy{
		Judge: allowAll,
		lookup: func(context.Context, string) ([]netip.Addr, error) {
			if lookups++; lookups > 1 {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
			return []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("fd00::1")}, nil
		},
		dial: func(_ context.Context, at netip.AddrPort) (net.Conn, error) {
			dialed = append(dialed, at)
			return net.Dial("tcp", server.Listener.Addr().String())
		},
	})
	if got := get(t, r.client(), "http://Example.COM./p"); got != "/p of example.com" {
		t.Errorf("the answer is %q", got)
	}
	if want := netip.MustParseAddrPort("192.0.2.7:80"); lookups != 1 || len(dialed) != 1 || dialed[0] != want {
		t.Errorf("%d lookups, connected to %v, want 1 and %s", lookups, dialed, want)
	}
}

// TestSlowAddress has an address that never answers before one that does.
func TestSlowAddress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{Proxy: &Proxy{dial: func(ctx context.Context, at netip.AddrPort) (net.Conn, error) {
			if at.Addr().Is6() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			c, other := net.Pipe()
			t.Cleanup(func() { _ = other.Close() })
			return c, nil
		}}, ctx: t.Context()}
		began := time.Now()
		c, at, err := s.dialFirst(t.Context(), []netip.AddrPort{netip.MustParseAddrPort("[2001:db8::1]:443"), netip.MustParseAddrPort("192.0.2.1:443")})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if at.Addr().Is6() || time.Since(began) != nextDial {
			t.Errorf("connected to %s after %s", at, time.Since(began))
		}
		s.running.Wait()
	})
}

// The transport of a request that was given up connects in a goroutine of its own: after the end of the proxy it begins nothing.
func TestNothingBeginsAfterTheEnd(t *testing.T) {
	t.Parallel()
	p := proxyTo(nil)
	p.dial = func(context.Context, netip.AddrPort) (net.Conn, error) {
		t.Error("it connects")
		return nil, errors.New("never")
	}
	s := &service{Proxy: p, ctx: t.Context(), over: true}
	if _, _, err := s.dialFirst(t.Context(), []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:443"), netip.MustParseAddrPort("192.0.2.2:443")}); !errors.Is(err, errEnded) {
		t.Errorf("it ends with %v", err)
	}
}

// TestPrivateAddressOfAName lets a name lead into a private network if the judge names the address.
func TestPrivateAddressOfAName(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(echoHost))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	var asked []Destination
	r := startProxy(t, &Proxy{
		Judge: func(_ context.Context, to Destination) Ruling {
			asked = append(asked, to)
			return Ruling{Allowed: true, Named: true}
		},
		lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
	})
	if got := get(t, r.client(), "http://intern.example:"+port+"/"); got != "/ of intern.example:"+port {
		t.Errorf("the answer is %q", got)
	}
	if len(asked) != 2 || asked[0].Host != "intern.example" || asked[0].Private != "" || asked[1].Host != "127.0.0.1" || asked[1].Name != "intern.example" || asked[1].Private != "this machine" {
		t.Errorf("the judge decided about %+v", asked)
	}
}

// TestWhatAServerSees sends requests that lie about their host, have headers for the proxy only, or hide a second request.
func TestWhatAServerSees(t *testing.T) {
	t.Parallel()
	requests := make(chan *http.Request, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		requests <- r
	}))
	defer server.Close()
	at := server.Listener.Addr().String()
	r := startProxy(t, &Proxy{Judge: allow(at), Secret: "open"})
	secret := "Proxy-Authorization: Basic dTpvcGVu\r\n" // u:open
	r.ask(t, "GET http://"+at+"/?a=1;b HTTP/1.1\r\nHost: evil.example\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 1\r\nProxy-Connection: keep-alive\r\nX-Forwarded-For: 1.2.3.4\r\n"+secret+"\r\n")
	got := <-requests
	if got.Host != at || got.URL.RawQuery != "a=1;b" || got.Header.Get("X-Mine") != "" || got.Header.Get("Proxy-Authorization") != "" || got.Header.Get("Proxy-Connection") != "" || got.Header.Get("X-Forwarded-For") != "1.2.3.4" {
		t.Errorf("the server got %s %s %v", got.Host, got.URL, got.Header)
	}
	hidden := "0\r\n\r\nGET http://" + at + "/hidden HTTP/1.1\r\nHost: " + at + "\r\n" + secret + "\r\n"
	answer := r.ask(t, "POST http://"+at+"/first HTTP/1.1\r\nHost: "+at+"\r\n"+secret+fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n", len(hidden))+hidden)
	if strings.Count(answer, "HTTP/1.1 ") != 1 {
		t.Errorf("the answer is %q", answer)
	}
	for len(requests) > 0 {
		if got := <-requests; got.URL.Path != "/first" {
			t.Errorf("the server got a hidden request: %s", got.URL)
		}
	}
	for _, bad := range []string{"Content-Length: 1\r\nContent-Length: 2\r\n", "Transfer-Encoding: xchunked\r\n", " folded: 1\r\n", "Host: two\r\n", "Bad Name: 1\r\n"} {
		if answer := r.ask(t, "POST http://"+at+"/bad HTTP/1.1\r\nHost: "+at+"\r\n"+secret+bad+"\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 4") && !strings.HasPrefix(answer, "HTTP/1.1 501") {
			t.Errorf("%q: the answer is %q", bad, answer)
		}
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 2 {
			_, _ = io.WriteString(w, "data\n")
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	}))
	defer server.Close()
	r := startProxy(t, &Proxy{Judge: allow(server.Listener.Addr().String())})
	resp, err := r.client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for range 2 {
		if line, err := lines.ReadString('\n'); line != "data\n" {
			t.Fatalf("%q, %v", line, err)
		}
		next <- struct{}{}
	}
}

// TestUpgrade changes the protocol of a plain request, as web sockets do.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := rw.ReadString('\n')
		_, _ = io.WriteString(c, line)
	}))
	defer server.Close()
	at := server.Listener.Addr().String()
	r := startProxy(t, &Proxy{Judge: allow(at)})
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET http://%s/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", at)
	from := bufio.NewReader(c)
	resp, err := http.ReadResponse(from, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", resp, err)
	}
	fmt.Fprintln(c, "hello")
	if line, err := from.ReadString('\n'); line != "hello\n" {
		t.Fatalf("%q, %v", line, err)
	}
	_ = c.Close()
	if a := <-r.log; !a.Allowed || a.Up == 0 {
		t.Errorf("the log has %+v", a)
	}
}

func TestSecret(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(echoHost))
	defer server.Close()
	at := server.Listener.Addr().String()
	r := startProxy(t, &Proxy{Judge: allow(at), Secret: "open"})
	for _, c := range []struct {
		login *url.Userinfo
		ok    bool
	}{{nil, false}, {url.UserPassword("raddle", "shut"), false}, {url.UserPassword("open", ""), false}, {url.UserPassword("any", "open"), true}} {
		client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: r.address, User: c.login}), DisableKeepAlives: true}}
		resp, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if c.ok != (resp.StatusCode == http.StatusOK) || !c.ok && (resp.StatusCode != http.StatusProxyAuthRequired || resp.Header.Get("Proxy-Authenticate") == "") {
			t.Errorf("HTTP with %v: %s", c.login, resp.Status)
		}
		var auth *socks.Auth
		if c.login != nil {
			pass, _ := c.login.Password()
			auth = &socks.Auth{User: c.login.Username(), Password: pass}
			if pass == "" {
				continue // the client refuses it
			}
		}
		dialer, err := socks.SOCKS5("tcp", r.address, auth, nil)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := dialer.Dial("tcp", at)
		if c.ok != (err == nil) {
			t.Errorf("SOCKS5 with %v: %v", c.login, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
	if answer := r.ask(t, "CONNECT "+at+" HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 407 ") {
		t.Errorf("CONNECT without the secret: %q", answer)
	}
}

func TestSOCKS(t *testing.T) {
	t.Parallel()
	r := startProxy(t, &Proxy{Judge: func(_ context.Context, to Destination) Ruling { return Ruling{Allowed: to.Host != "bad.example"} },
		lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
		},
		dial: func(context.Context, netip.AddrPort) (net.Conn, error) { return nil, errors.New("away") },
	})
	name := func(host string) string { return "\x03" + string(rune(len(host))) + host }
	for _, c := range []struct{ what, send, want string }{
		{"a refused name", "\x05\x01\x00\x05\x01\x00" + name("bad.example") + "\x01\xbb", "\x05\x00\x05\x02"},
		{"an allowed name", "\x05\x01\x00\x05\x01\x00" + name("good.example") + "\x01\xbb", "\x05\x00\x05\x01"},
		{"IPv4", "\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x01\xbb", "\x05\x00\x05\x02"},
		{"IPv6", "\x05\x01\x00\x05\x01\x00\x04" + strings.Repeat("\x00", 15) + "\x01\x01\xbb", "\x05\x00\x05\x02"},
		{"a name with a NUL", "\x05\x01\x00\x05\x01\x00" + name("evil.example\x00.good.example") + "\x01\xbb", "\x05\x00\x05\x02"},
		{"an address as a number", "\x05\x01\x00\x05\x01\x00" + name("2130706433") + "\x01\xbb", "\x05\x00\x05\x02"},
		{"BIND", "\x05\x01\x00\x05\x02\x00" + name("good.example") + "\x01\xbb", "\x05\x00\x05\x07"},
		{"UDP", "\x05\x01\x00\x05\x03\x00" + name("good.example") + "\x01\xbb", "\x05\x00\x05\x07"},
		{"another type of address", "\x05\x01\x00\x05\x01\x00\x09", "\x05\x00\x05\x08"},
		{"another version", "\x05\x01\x00\x04\x01\x00\x01", "\x05\x00"},
		{"a password though none is needed", "\x05\x01\x02\x01\x01a\x01b\x05\x01\x00" + name("bad.example") + "\x01\xbb", "\x05\x02\x01\x00\x05\x02"},
		{"no method", "\x05\x01\x01", "\x05\xff"},
	} {
		if got := r.ask(t, c.send); !strings.HasPrefix(got, c.want) || len(c.want) == 2 && len(got) != 2 {
			t.Errorf("%s: %q, want %q …", c.what, got, c.want)
		}
	}
	for _, c := range []struct{ host, reason string }{{"bad.example", "no rule"}, {"good.example", ""}, {"127.0.0.1", "this machine"}, {"::1", "this machine"}, {`evil.example\x00.good.example:443`, "letters"}} {
		if a := <-r.log; a.Host != c.host || !strings.Contains(a.Reason, c.reason) || a.Protocol != "socks5" {
			t.Errorf("the log has %+v, want %s and %s", a, c.host, c.reason)
		}
	}
}

// TestHalfClose sends all, says so, and gets the answer afterwards.
func TestHalfClose(t *testing.T) {
	t.Parallel()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		c, err := server.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		all, _ := io.ReadAll(c)
		_, _ = c.Write(all)
	}()
	r := startProxy(t, &Proxy{Judge: allow(server.Addr().String())})
	dialer, err := socks.SOCKS5("tcp", r.address, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := dialer.Dial("tcp", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text := strings.Repeat("raddle", 100_000)
	go func() {
		_, _ = io.WriteString(c, text)
		_ = c.(interface{ CloseWrite() error }).CloseWrite()
	}()
	if all, err := io.ReadAll(c); err != nil || string(all) != text {
		t.Errorf("%d bytes came back, %v", len(all), err)
	}
	if a := <-r.log; a.Up != int64(len(text)) || a.Down != a.Up || a.Ended != "" {
		t.Errorf("the log has %+v", a)
	}
}

// TestServerName begins TLS handshakes for another host than that of the tunnel.
func TestServerName(t *testing.T) {
	t.Parallel()
	server := startTLS(t, http.HandlerFunc(echoHost))
	r := startProxy(t, &Proxy{
		Judge: allow("front.example", "front.example:8443", "other.example"),
		lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
		},
		dial: func(context.Context, netip.AddrPort) (net.Conn, error) {
			return net.Dial("tcp", server.Listener.Addr().String())
		},
	})
	for _, c := range []struct {
		to, name string
		ok       bool
		reason   string
	}{
		{"front.example:443", "front.example", true, ""},
		{"front.example:443", "FRONT.example", true, ""},
		{"front.example:443", "", true, ""},
		{"front.example:443", "other.example", true, ""},
		{"front.example:443", "hidden.example", false, "the connection is for front.example, but its TLS handshake is for this host: no rule"},
		{"front.example:8443", "front.example", true, ""},
		{"front.example:8443", "other.example", false, "no rule"},
	} {
		dialer, err := socks.SOCKS5("tcp", r.address, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		inner, err := dialer.Dial("tcp", c.to)
		if err != nil {
			t.Fatal(err)
		}
		conn := tls.Client(&slowConn{inner}, &tls.Config{InsecureSkipVerify: true, ServerName: c.name})
		err = conn.Handshake()
		if c.ok != (err == nil) || !c.ok && !strings.Contains(err.Error(), "access denied") {
			t.Errorf("%s with the name %q: %v", c.to, c.name, err)
		}
		_ = inner.Close()
		if a := <-r.log; a.Allowed != c.ok || !strings.Contains(a.Reason, c.reason) {
			t.Errorf("%s with the name %q: the log has %+v", c.to, c.name, a)
		}
	}
	for _, hello := range []string{"\x16\x03\x01\x00\x02\x01\x00\x16", "\x16\x16\x16\x16\x16\x16\x16\x16", "\x16\x03\x01\x00\x04\x01\x00\x00\x00"} {
		answer := r.ask(t, "CONNECT front.example:443 HTTP/1.1\r\nHost: x\r\n\r\n"+hello+strings.Repeat("x", 100))
		if !strings.Contains(answer, "\r\n\r\n\x15\x03\x03\x00\x02\x02\x31") {
			t.Errorf("%q: the answer is %q", hello, answer)
		}
		if a := <-r.log; a.Allowed || a.Up != 0 || !strings.Contains(a.Reason, "cannot be read") {
			t.Errorf("%q: the log has %+v", hello, a)
		}
	}
}

// A slowConn sends a few bytes at a time.
type slowConn struct{ net.Conn }

func (c *slowConn) Write(b []byte) (n int, err error) {
	for part := range slices.Chunk(b, 100) {
		m, err := c.Conn.Write(part)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// TestEnds ends the proxy while connections are in all states. Nothing stays behind.
func TestEnds(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	at := server.Addr().String()
	asked := make(chan struct{})
	r := startProxy(t, &Proxy{
		Judge: func(ctx context.Context, to Destination) Ruling {
			if to.Host == "ask.example" {
				close(asked)
				<-ctx.Done()
			}
			return Ruling{Allowed: true, Named: true}
		},
	})
	var open []net.Conn
	for _, text := range []string{
		"", "\x05", "\x05\x01\x00", "GET ", "\x05\x01\x00\x05\x01\x00\x03\x0bask.example\x01\xbb",
		"CONNECT " + at + " HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://" + at + "/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT " + at + " HTTP/1.1\r\nHost: x\r\n\r\n\x16\x03",
	} {
		c, err := net.Dial("tcp", r.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	for range 3 {
		c, err := server.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	<-asked
	r.stop()
	if err := <-r.done; err != nil {
		t.Errorf("Serve: %v", err)
	}
	for _, c := range open {
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a connection is still open: %v", err)
		}
	}
	if len(r.log) != 4 {
		t.Errorf("%d attempts in the log, want 4", len(r.log))
	}
	var stacks string
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); runtime.Gosched() {
		b := make([]byte, 1<<20)
		if stacks = string(b[:runtime.Stack(b, true)]); !strings.Contains(stacks, "netproxy.(*service)") && !strings.Contains(stacks, "netproxy.(*openAttempt)") {
			return
		}
	}
	t.Errorf("goroutines stay behind:\n%s", stacks)
}

// TestIdle ends a tunnel through which nothing goes.
func TestIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		outer, far := net.Pipe()
		program, near := net.Pipe()
		var got []Attempt
		p := &Proxy{Judge: allow("192.0.2.1"), Log: func(a Attempt) { got = append(got, a) },
			dial: func(context.Context, netip.AddrPort) (net.Conn, error) { return outer, nil }}
		listener := &oneConn{conns: make(chan net.Conn, 1)}
		listener.conns <- near
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Serve(ctx, listener) }()
		began := time.Now()
		_, _ = io.WriteString(program, "\x05\x01\x00")
		_, _ = io.ReadFull(program, make([]byte, 2))
		_, _ = io.WriteString(program, "\x05\x01\x00\x01\xc0\x00\x02\x01\x01\xbb")
		_, _ = io.ReadFull(program, make([]byte, 10))
		time.Sleep(idleTimeout - time.Second)
		_, _ = io.WriteString(program, "x")
		_, _ = io.ReadFull(far, make([]byte, 1))
		if _, err := far.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the connection ended with %v", err)
		}
		if took := time.Since(began); took != 2*idleTimeout-time.Second {
			t.Errorf("it ended after %s", took)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(got) != 1 || got[0].Up != 1 || got[0].Ended != errIdle.Error() {
			t.Errorf("the log has %+v", got)
		}
	})
}

// A oneConn is a listener with connections that a test makes.
type oneConn struct {
	conns chan net.Conn
	once  sync.Once
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.conns) })
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

func TestServeReportsABrokenListener(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	if err := (&Proxy{Judge: allowAll}).Serve(t.Context(), listener); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve: %v", err)
	}
}
