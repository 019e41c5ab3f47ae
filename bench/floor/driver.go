//go:build !peers

package floor

import _ "modernc.org/sqlite" // raddle's driver

const driver = "sqlite"
