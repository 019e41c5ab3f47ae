// Package runfile is the file of an exported run: its journal with those of the runs that it was forked from, the files
// of its agent, and versions, without secrets. The file is text: one JSON object a line, first a header, last a line
// with a checksum of all others.
//
// [Collect] makes a [File] of a run, [File.Write] writes it, [Read] reads it and checks everything that is in it, and
// [File.Import] puts its journals into a store. A reader accepts files of its own format only, ignores members that it
// does not know, and has limits: what it reads may come from anybody.
package runfile
