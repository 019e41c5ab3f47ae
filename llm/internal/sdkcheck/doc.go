// Package sdkcheck holds the wires against the vendors' own Go libraries: every field of a request must be one that the
// library's types know, with a value that they accept, and every field that a wire reads from an event must be one that
// the library reads, too. What raddle serve answers in OpenAI's form is read with OpenAI's library. It is a module of
// its own, so that neither the program nor its tests compile the libraries. Run it with make check-sdks, after updating
// the libraries with go get.
package sdkcheck
