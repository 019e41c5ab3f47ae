package stores

import (
	"github.com/redis/go-redis/v9/logging"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/config"
	"raddle.dev/store/redis"
)

// locateRedis returns the URL itself, with its password.
func locateRedis(url, _ string, _ config.Dirs) (string, error) {
	if _, err := redis.Address(url); err != nil {
		return "", failure.NewInvalid("correct `store` in config.yaml or RADDLE_STORE", "the store cannot be used: %v", err)
	}
	return url, nil
}

// hideUser returns the URL of a place without its user and password.
func hideUser(place string) string {
	address, _ := redis.Address(place) // locateRedis has checked it
	return address
}

// openRedis opens a store on Redis. The client must not write to the terminal of a run.
func openRedis(place string) (journal.Store, error) {
	logging.Disable()
	st, err := redis.Open(place)
	if err != nil {
		return nil, err
	}
	return st, nil
}

// existsServer reports that there is something: opening it writes nothing.
func existsServer(string) bool { return true }
