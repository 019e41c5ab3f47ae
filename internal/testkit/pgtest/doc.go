// Package pgtest starts PostgreSQL servers for tests: real processes with a password, on a
// port of their own of 127.0.0.1. A server ends with the process of the test, however that ends.
// It works on Unix only.
package pgtest
