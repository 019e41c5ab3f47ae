//go:build peers

package floor

// that of most peers; one of them registers another driver under the name of raddle's
import _ "github.com/mattn/go-sqlite3"

const driver = "sqlite3"
