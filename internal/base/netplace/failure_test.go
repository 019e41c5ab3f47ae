package netplace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Each failure is a real one, except those that need a network that is cut.
func TestDescribeFailure(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	plain := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-release
		}
	}))
	defer plain.Close()
	defer close(release)
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	ask := func(url string, limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{ask("http://"+address, time.Minute), "refuses connections"},
		{ask("https"+strings.TrimPrefix(plain.URL, "http"), time.Minute), "does not speak https"},
		{ask(secure.URL, time.Minute), "a certificate that is not trusted"},
		{ask(plain.URL+"/slow", time.Millisecond), "does not answer in time"},
		{&net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}, "no host with this name"},
		{&net.DNSError{Err: "server misbehaving", Name: "x"}, "cannot be looked up: server misbehaving"},
		{fmt.Errorf("dial: %w", syscall.ENETUNREACH), "cannot be reached"},
	} {
		if got := DescribeFailure(c.err); !strings.Contains(got, c.want) {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
	if got := DescribeFailure(errors.New("another")); got != "" {
		t.Errorf("another error: %q", got)
	}
}
