// Package testkit holds what tests need and programs do not: servers of databases and providers, clients in other
// languages, terminals, files.
package testkit
