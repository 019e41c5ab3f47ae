package gateway

import "net/http"

// pageHeaders are on every answer, whatever it is: a browser may open any address as a page, and pages of other ports
// of this machine are of the same site. default-src is no default for the last three parts of the policy. Images of
// blob: addresses are those that a script of the page has made itself: no text of a reply can write one.
//
// Cross-Origin-Resource-Policy concerns requests in which a page embeds an answer without reading it. Requests of the
// pages that --allow-origin names ask whether they may read (CORS), and that is decided by their Origin.
var pageHeaders = [][2]string{
	{"Content-Security-Policy", "default-src 'self'; img-src 'self' blob:; object-src 'none'; frame-src 'none'; worker-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"},
	{"X-Frame-Options", "DENY"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "no-referrer"},
}

// setPageHeaders sets the headers that protect a browser.
func setPageHeaders(h http.Header) {
	for _, header := range pageHeaders {
		h.Set(header[0], header[1])
	}
}
