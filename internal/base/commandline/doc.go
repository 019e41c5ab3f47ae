// Package commandline translates spellings of a command line that raddle's commands do not have into those that they
// have.
package commandline
