// Package modeltest plays one fixed conversation with a model and says what works: the steps of raddle models test, and
// of the table of the guide. It stores nothing.
package modeltest
