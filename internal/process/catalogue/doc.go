// Package catalogue knows what providers publish about their models: how many tokens they take, what they cost, and
// what they can do. It has facts only: no addresses, no keys, and nothing that a request is built from.
//
// The catalogue is one file of the shape of models.dev's api.json, with one line for each provider, so that a lookup
// reads one line. A copy is in the program; [Parse] accepts a newer one.
package catalogue
