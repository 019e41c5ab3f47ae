// Package gateway is the HTTP server around the API and the protocols: who may call, from where, how much, and how the
// process begins and ends. The handlers behind it check no tokens; they find the caller in the context of a request.
package gateway
