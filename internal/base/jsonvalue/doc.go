// Package jsonvalue holds JSON values as state has them: objects that keep the order of their members, whole numbers
// that stay whole, and the texts that the file format fixes for them. A value is nil, a bool, an int64, a uint64, a
// float64, a string, a []any or an *[Object].
package jsonvalue
