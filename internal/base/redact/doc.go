// Package redact removes known secret values from texts. It is the only
// redactor of the module: everything that writes a journal, a log, an event, a
// request or a line of output uses a [Set], or a function that is backed by a
// Set.
//
// A Set finds a value in these forms:
//
//   - as it is, without the white space at its ends, with line breaks as LF or
//     CRLF, with line breaks replaced by spaces or left out
//   - each line of at least 16 bytes of a value with several lines, and each
//     item of at least 16 bytes of a list that commas or semicolons separate
//   - with escapes of JSON, of shells ('…', "…", $'…', printf %q), of Go and of
//     C, also JSON inside JSON inside JSON
//   - without control characters and the escape sequences of terminals
//   - encoded for URLs (path and query) and for HTML and XML
//   - the whole value in base64: both alphabets, with and without padding, with
//     a line break after the value, and in lines of 64 or 76 characters
//   - a value that is JSON: also without white space, indented, with sorted
//     keys, and the strings in it whose names are those of secrets
//
// It does not find parts of a value, or other encodings (hexadecimal, base64 of
// a text that contains the value, compression, encryption).
package redact

// Mask is what replaces a secret.
const Mask = "[redacted]"
