// Package mcplogin logs in to MCP servers on the network with OAuth 2.1, as the protocol's specification wants it: the
// server names its authorization server (RFC 9728), whose metadata (RFC 8414) name its endpoints; raddle registers
// itself (RFC 7591) unless a client id is configured; the person agrees in the browser (PKCE with S256, state, iss of
// RFC 9207, resource indicators of RFC 8707); tokens are stored for this server and this issuer only.
//
// Everything that a server says is untrusted: addresses are fetched over https only, or from this machine if the server
// itself is there, never from a private address that is not the server's own, and redirections are not followed.
package mcplogin
