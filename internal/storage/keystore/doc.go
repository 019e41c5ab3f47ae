// Package keystore stores keys of providers: in the keychain of the system where there is one, otherwise in a file that
// only the user can read. A small file says which keys there are, so that the keychain is asked only for a key that is
// needed.
package keystore
