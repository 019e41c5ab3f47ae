package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"raddle.dev/tool"
	"raddle.dev/tool/builtin"
	"raddle.dev/tool/permission"
)

// namesOf returns a resolver that knows these names only.
func namesOf(t *testing.T, names map[string]string) *net.Resolver {
	answer := func(question []byte) []byte {
		var m dnsmessage.Message
		if err := m.Unpack(question); err != nil {
			t.Error(err)
			return nil
		}
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		q := m.Questions[0]
		text, known := names[strings.TrimSuffix(q.Name.String(), ".")]
		if !known {
			m.RCode = dnsmessage.RCodeNameError
		}
		head := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1}
		for _, one := range strings.Fields(text) {
			switch at := netip.MustParseAddr(one); {
			case at.Is4() && q.Type == dnsmessage.TypeA:
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: at.As4()}})
			case at.Is6() && q.Type == dnsmessage.TypeAAAA:
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: at.As16()}})
			}
		}
		out, err := m.Pack()
		if err != nil {
			t.Error(err)
		}
		return out
	}
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() { // a stream: each message has its length before it
			defer theirs.Close()
			for {
				head := make([]byte, 2)
				if _, err := io.ReadFull(theirs, head); err != nil {
					return
				}
				question := make([]byte, int(head[0])<<8|int(head[1]))
				if _, err := io.ReadFull(theirs, question); err != nil {
					return
				}
				out := answer(question)
				if _, err := theirs.Write(append([]byte{byte(len(out) >> 8), byte(len(out))}, out...)); err != nil {
					return
				}
			}
		}()
		return ours, nil
	}}
}

// fetchWith makes a call with rules that allow, as a gate does: what asks is refused.
func fetchWith(t *testing.T, h builtin.Host, address string, rules ...string) string {
	t.Helper()
	h.Workspace = t.TempDir()
	page := lookup(t, h, "fetch_url_via_curl")
	var list permission.Rules
	for _, text := range rules {
		into := &list.Allow
		if rest, ok := strings.CutPrefix(text, "deny "); ok {
			text, into = rest, &list.Deny
		} else if rest, ok := strings.CutPrefix(text, "ask "); ok {
			text, into = rest, &list.Ask
		}
		r, err := permission.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		*into = append(*into, r)
	}
	policy := permission.Policy{Workspace: h.Workspace, Rules: []permission.Rules{list}}
	judge := func(args json.RawMessage, _ []string) error {
		d, err := policy.Decide(t.Context(), page, tool.Call{Args: args})
		if err == nil && d.Verdict != permission.Allow {
			err = errors.New("no rule allows it")
		}
		return err
	}
	args := raw(t, object{"url": address})
	if err := judge(args, nil); err != nil {
		return "asks"
	}
	r, err := page.Run(t.Context(), tool.Call{Args: args, Permit: &tool.Permit{Judge: judge}})
	if err != nil {
		t.Fatal(err)
	}
	var text struct {
		Output  string `json:"output"`
		Failure string `json:"tool_call_error"`
	}
	if err := json.Unmarshal([]byte(r.Text()), &text); err != nil {
		t.Fatal(err)
	}
	return text.Output + text.Failure
}

// TestRedirectsStayInTheRule follows redirections of every kind: the rules must allow each address as they would in a call of its own.
func TestRedirectsStayInTheRule(t *testing.T) {
	other := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "other"+r.URL.Path+r.Referer()) })
	page := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
			return
		}
		fmt.Fprint(w, "page "+r.URL.Path)
	})
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(tls.Close)
	docs := "fetch_url_via_curl(" + page + "/docs/*)"
	for _, c := range []struct {
		to    string
		rules []string
		want  string // the answer, or "" for a redirection that is refused
	}{
		{"/docs/b", []string{docs}, "page /docs/b"},
		{"b", []string{docs}, "page /docs/b"},
		{page + "/docs/x/../b", []string{docs}, "page /docs/b"},
		{"/admin/secret", []string{docs}, ""},
		{"../admin/secret", []string{docs}, ""},
		{"/docs/../admin/secret", []string{docs}, ""},
		{"/docs/%2e%2e/admin/secret", []string{docs}, ""},
		{"/docs", []string{docs}, ""},
		{"//" + strings.TrimPrefix(other, "http://") + "/docs/b", []string{docs}, ""},
		{other + "/docs/b", []string{docs}, ""},
		{other + "/b", []string{docs, "fetch_url_via_curl(" + other + "/*)"}, "other/b"},
		{strings.Replace(page, "http:", "https:", 1) + "/docs/b", []string{docs}, ""},
		{strings.Replace(page, "127.0.0.1", "localhost", 1) + "/docs/b", []string{docs}, ""},
		{strings.Replace(page, "127.0.0.1", "[::ffff:127.0.0.1]", 1) + "/docs/b", []string{docs}, ""},
		{"file:///etc/passwd", []string{docs}, ""},
		{"gopher://127.0.0.1/docs/", []string{docs}, ""},
		{"/docs/b", []string{docs, "deny fetch_url_via_curl(" + page + "/docs/b*)"}, ""},
		{"/docs/b", []string{docs, "ask any host(" + page + "/docs/b*)"}, ""},
		{"/docs/n?to=/admin/secret", []string{docs}, ""},
		{"/docs/n?to=/docs/b", []string{docs}, "page /docs/b"},
		{"/any", []string{"fetch_url_via_curl(127.0.0.1)"}, "page /any"},
		{other + "/any", []string{"fetch_url_via_curl(127.0.0.1)"}, "other/any"},
		{other + "/any", []string{"any host(" + strings.TrimPrefix(page, "http://") + ")"}, ""},
	} {
		start := page + "/docs/r?to=" + url.QueryEscape(c.to)
		got := fetchWith(t, builtin.Host{}, start, c.rules...)
		switch {
		case c.want != "" && got != c.want:
			t.Errorf("to %s with %v: %s, want %s", c.to, c.rules, got, c.want)
		case c.want == "" && (!strings.HasPrefix(got, start+" redirects to ") && !strings.Contains(got, "cannot be reached") || strings.Contains(got, "secret\n") || strings.HasPrefix(got, "page") || strings.HasPrefix(got, "other")):
			t.Errorf("to %s with %v: %s, want a refusal", c.to, c.rules, got)
		}
	}
	got := fetchWith(t, builtin.Host{}, page+"/docs/r?to=/admin/secret", docs)
	for _, part := range []string{page + "/admin/secret", "no rule allows it", "the rule fetch_url_via_curl(" + page + "/admin/secret) allows it"} {
		if !strings.Contains(got, part) {
			t.Errorf("%s\nhas no %q", got, part)
		}
	}
}

// privateForms are addresses that are not the public internet, in every form in which they are written or resolved to.
var privateForms = []string{
	"127.0.0.1", "127.8.8.8", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "169.254.169.254", "100.64.0.1",
	"100.127.255.255", "192.0.0.1", "198.18.0.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
	"::", "::1", "fc00::1", "fd00:ec2::254", "fe80::1", "febf::1", "fec0::1", "ff02::1", "100::1",
	"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "::10.0.0.1",
	"64:ff9b::127.0.0.1", "64:ff9b::a00:1", "64:ff9b::169.254.169.254", "64:ff9b:1::1", "64:ff9b:1:2:3:4:808:808",
	"2002:7f00:1::", "2002:a00:1::1", "2002:a9fe:a9fe::", "2002:c0a8:1::1", "2001:0:a00:1::1", "2001:0:808:808:0:0:80ff:fffe", // the last client is 127.0.0.1
	"2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:192.168.1.1",
}

// publicForms are addresses of the public internet that look like them.
var publicForms = []string{
	"1.1.1.1", "9.255.255.255", "11.0.0.1", "126.255.255.255", "128.0.0.1", "172.15.255.255", "172.32.0.1", "192.167.1.1", "192.169.1.1", "169.253.1.1", "100.63.1.1", "100.128.0.1",
	"198.17.1.1", "198.20.0.1", "223.255.255.255", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::", "fbff::1", "2001:0:808:808:0:0:f7f7:f7f7", "2001:4860::8888",
}

// TestAddressesOfThisMachineMustBeNamed looks at addresses that are written in a call: no rule about every host covers those that are private.
func TestAddressesOfThisMachineMustBeNamed(t *testing.T) {
	h := builtin.Host{Workspace: t.TempDir()}
	page := lookup(t, h, "fetch_url_via_curl")
	decide := func(address, rule string) permission.Verdict {
		r, err := permission.ParseRule(rule)
		if err != nil {
			t.Fatal(err)
		}
		policy := permission.Policy{Workspace: h.Workspace, Rules: []permission.Rules{{Allow: []permission.Rule{r}}}}
		d, err := policy.Decide(t.Context(), page, tool.Call{Args: raw(t, object{"url": address})})
		if err != nil {
			t.Fatal(err)
		}
		return d.Verdict
	}
	inURL := func(host string) string {
		if strings.Contains(host, ":") {
			return "[" + host + "]"
		}
		return host
	}
	wide := []string{"fetch_url_via_curl", "*", "fetch_url_via_curl(*)", "fetch_url_via_curl(http://*)", "any host(*)", "any host(http*)", "fetch_*"}
	for _, host := range slices.Concat(privateForms, []string{"localhost", "LOCALHOST", "localhost.", "a.localhost"}) {
		for _, port := range []string{"", ":8080"} {
			address := "http://" + inURL(host) + port + "/docs/a"
			for _, rule := range wide {
				if got := decide(address, rule); got != permission.Ask {
					t.Errorf("%s with the rule %s: %v", address, rule, got)
				}
			}
			named := []string{"fetch_url_via_curl(" + inURL(host) + port + ")", "fetch_url_via_curl(" + address + ")", "any host(http://" + inURL(host) + port + "/docs/*)", "any host(http://" + inURL(host) + port + "/*)"}
			for _, rule := range named {
				if got := decide(address, rule); got != permission.Allow {
					t.Errorf("%s with the rule %s: %v", address, rule, got)
				}
			}
		}
	}
	for _, host := range append(slices.Clone(publicForms), "example.com", "localhost.example.com", "notlocalhost") {
		for _, rule := range wide {
			if got := decide("http://"+inURL(host)+"/", rule); got != permission.Allow {
				t.Errorf("%s with the rule %s: %v", host, rule, got)
			}
		}
	}
	for rule, want := range map[string]permission.Verdict{
		"fetch_url_via_curl(192.168.*)": permission.Allow, "fetch_url_via_curl(http://192.168.1.*)": permission.Allow, "fetch_url_via_curl(192.168.1.2:*)": permission.Allow,
		"fetch_url_via_curl(1*)": permission.Ask, "fetch_url_via_curl(*.2)": permission.Ask, "fetch_url_via_curl(http*192.168.1.2*)": permission.Ask,
	} {
		if got := decide("http://192.168.1.2:8080/", rule); got != want {
			t.Errorf("the rule %s: %v", rule, got)
		}
	}
}

// TestNamesMayNotLeadIntoPrivateNetworks resolves names that rules allow to addresses of every kind. None of the refused addresses is connected to.
func TestNamesMayNotLeadIntoPrivateNetworks(t *testing.T) {
	page := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "page for "+r.Host) })
	port := page[strings.LastIndex(page, ":"):]
	names := map[string]string{"local.test": "127.0.0.1", "both.test": "10.0.0.1 fd00::1"}
	for i, at := range privateForms {
		names[fmt.Sprintf("n%d.test", i)] = at
	}
	h := builtin.Host{Resolver: namesOf(t, names)}
	for i, at := range privateForms {
		host := fmt.Sprintf("n%d.test", i)
		for _, rule := range []string{"fetch_url_via_curl", "fetch_url_via_curl(" + host + ")", "any host(http://" + host + "/*)"} {
			got := fetchWith(t, h, "http://"+host+"/a", rule)
			if !strings.HasPrefix(got, host+" was not fetched: "+host+" has the address ") || !strings.Contains(got, "only a rule that names the address allows that") {
				t.Errorf("%s at %s with %s: %s", host, at, rule, got)
			}
		}
	}
	named := "fetch_url_via_curl(http://127.0.0.1" + port + "/*)"
	if got := fetchWith(t, h, "http://local.test"+port+"/a", "fetch_url_via_curl(local.test)", named); got != "page for local.test"+port {
		t.Errorf("a rule that names the address: %s", got)
	}
	if got := fetchWith(t, h, "http://local.test"+port+"/b", "fetch_url_via_curl(local.test)", "fetch_url_via_curl(http://127.0.0.1"+port+"/a)"); !strings.Contains(got, "was not fetched") {
		t.Errorf("a rule that names another page of the address: %s", got)
	}
	if got := fetchWith(t, h, "http://both.test/a", "fetch_url_via_curl(both.test)"); !strings.Contains(got, "was not fetched") {
		t.Errorf("a name with two private addresses: %s", got)
	}
	if got := fetchWith(t, h, strings.Replace(page, "127.0.0.1", "localhost", 1), "fetch_url_via_curl(localhost)"); !strings.HasPrefix(got, "page for localhost") {
		t.Errorf("localhost by name: %s", got)
	}
	redirect := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://local.test"+port+"/a", http.StatusFound)
	})
	if got := fetchWith(t, h, redirect, "fetch_url_via_curl("+redirect+"/*)", "fetch_url_via_curl(local.test)"); !strings.Contains(got, "local.test has the address 127.0.0.1") {
		t.Errorf("a redirection to a name that leads to this machine: %s", got)
	}
	if r := use(t, h, "fetch_url_via_curl", object{"url": "http://local.test" + port}); !strings.Contains(r, "local.test has the address 127.0.0.1") {
		t.Errorf("where nobody judges: %s", r)
	}
}

// TestProxiesAreNotAWayAround sends requests through a proxy on this machine, which the environment names.
func TestProxiesAreNotAWayAround(t *testing.T) {
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "through the proxy: "+r.RequestURI) })
	at, err := url.Parse(proxy)
	if err != nil {
		t.Fatal(err)
	}
	h := builtin.Host{Client: &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(at)}}, Resolver: namesOf(t, map[string]string{"public.test": "1.1.1.1", "inside.test": "10.0.0.1"})}
	for host, want := range map[string]string{
		"public.test":  "through the proxy: http://public.test/a",
		"unknown.test": "through the proxy: http://unknown.test/a", // only the proxy knows the name
		"inside.test":  "inside.test was not fetched: inside.test has the address 10.0.0.1",
	} {
		if got := fetchWith(t, h, "http://"+host+"/a", "fetch_url_via_curl("+host+")"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", host, got)
		}
	}
	if got := fetchWith(t, h, "http://169.254.169.254/a", "fetch_url_via_curl"); got != "asks" {
		t.Errorf("an address behind the proxy: %s", got)
	}
}

// TestServicesAreNotInPrivateNetworks gives the name of a service an address of this machine.
func TestServicesAreNotInPrivateNetworks(t *testing.T) {
	h := builtin.Host{Resolver: namesOf(t, map[string]string{"wttr.in": "127.0.0.1", "r.jina.ai": "10.0.0.1", "export.arxiv.org": "::1"})}
	for name, args := range map[string]object{
		"get_current_weather": {"location": "x"}, "fetch_url_via_jina": {"url": "http://example.com"}, "search_arxiv": {"query": "x"},
	} {
		if got := use(t, h, name, args); !strings.Contains(got, "was not fetched") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
