package stores

import (
	"context"
	"net/url"
	"strings"

	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/config"
	"raddle.dev/store/postgres"
)

func locatePostgres(address, rest string, _ config.Dirs) (string, error) {
	if !strings.HasPrefix(rest, "//") || rest == "//" {
		return "", failure.NewInvalid("write postgres://USER@HOST:PORT/NAME", "the store %q names no server", HidePassword(address))
	}
	return "postgres:" + rest, nil
}

func openPostgres(place string) (journal.Store, error) {
	st, err := postgres.Open(context.Background(), place)
	if err != nil {
		return nil, err
	}
	return st, nil
}

// HidePassword returns the URL of a store without its password, for messages. Of a URL that cannot be
// read it also leaves out the user and the parameters, because any part may be one of the password.
func HidePassword(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	switch {
	case !ok && strings.Contains(address, "@"):
		scheme, _, _ := strings.Cut(address, ":")
		return scheme + ":..."
	case !ok:
		return address
	}
	u, err := url.Parse(address)
	if err != nil || strings.Contains(u.Path+u.RawQuery+u.Fragment, "@") {
		rest = rest[strings.LastIndex(rest, "@")+1:]
		rest, _, _ = strings.Cut(rest, "?")
		return scheme + "://" + rest
	}
	switch {
	case u.User == nil:
	case u.User.Username() == "":
		u.User = nil
	default:
		u.User = url.User(u.User.Username())
	}
	if q := u.Query(); q.Has("password") || q.Has("sslpassword") {
		q.Del("password")
		q.Del("sslpassword")
		u.RawQuery = q.Encode()
	}
	return u.String()
}
