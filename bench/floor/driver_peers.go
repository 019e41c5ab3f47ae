//go:build peers

package floor

import _ "github.com/mattn/go-sqlite3" // that of most peers; one of them registers another driver under the name of raddle's

const driver = "sqlite3"
