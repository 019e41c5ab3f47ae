// Package llmtest provides strict test servers for providers: local servers
// that refuse a history that the vendor would refuse, in the vendor's format, and
// stream prepared turns in the most awkward way that the vendor's API allows.
package llmtest
