// Package llmtest plays providers that take nothing for granted: local servers
// that refuse a history the vendor would refuse, in the vendor's shape, and
// stream prepared turns in the most awkward way the vendor may.
package llmtest
