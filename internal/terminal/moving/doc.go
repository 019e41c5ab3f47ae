// Package moving takes what other programs of this kind have on a machine into raddle: it reads their files into one
// list of things, says of each whether raddle takes it, changes it or leaves it and why, and carries out the list.
//
// A [Program] is a row of a table: where its files are, and a function that reads them. Nothing of another program is
// written, files with its logins are never opened, and a secret that a file holds is not copied: a variable takes its
// place, or the person is asked whether to store it.
package moving
