// Package box runs the commands of agents in a box of the operating system: a command reads what is not secret, writes
// the workspace, a directory of temporary files and caches that are thrown away, and reaches no network. What is not
// known to be harmless can run in it without a question.
//
//	b, err := box.New(box.Spec{Workspace: dir, Home: home})
//	stay, err := b.EnterBox(ctx, proc.Command{Path: "bash", Args: []string{"-c", "go test ./..."}, Dir: dir, Env: env})
//	result, err := proc.Run(ctx, stay.Command)
//	outcome, err := stay.LeaveBox(nil)
//
// On Linux the box is a set of unprivileged namespaces (user, mount, process, network, IPC) with a filter of system
// calls. This program starts itself as the first process in them, which prepares the view of the file system, gives up
// its rights and starts the command. The workspace is covered by a layer: what the command writes lies in the layer,
// and [Stay.LeaveBox] moves it into the workspace when the command has ended, except what is protected and what a
// person has changed meanwhile. So nothing of a command that was cut off is in the workspace.
//
// Where the system offers no namespaces, the box holds by Landlock and a stricter filter, without a network and without
// a layer: protected paths are put back when the command has ended. [Box.DescribeBox] says which way holds, and what it
// does not hold.
//
// The package promises nothing about memory and processor time, about what a command prints, and about the screen and
// devices of a person who runs raddle as root outside of a container.
package box

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"raddle.dev/internal/base/proc"
)

// ErrNone says that no box holds on this system.
var ErrNone = errors.New("this system offers no box")

// A Spec says what a box allows. All paths are absolute.
type Spec struct {
	// Workspace is the directory that commands may change.
	Workspace string
	// ReadOnly is for processes that live long, such as servers: they see the workspace as it is at each moment, which
	// a layer, below which nothing must change, cannot show, and they cannot change it.
	ReadOnly bool
	// Private is an existing directory in which the box keeps temporary files and layers; it must not lie in the
	// workspace, nor the workspace in it.
	Private string
	// Aside is a directory for what commands did to protected paths, where the system offers no layer. It is created
	// when it is needed, and nothing in it is removed. It must not lie in the workspace. Empty: commands are held with
	// a layer, or not at all.
	Aside string
	// Hidden returns the files and directories that commands see empty, when a command starts. What does not exist is
	// left out. nil: none.
	Hidden func() []string
	// Layers are directories that commands may write, such as caches of build tools. What they write is seen by later
	// commands in the same box, and thrown away with it.
	Layers []string
	// Serve serves the listener on which commands find their proxy, and returns when ctx has ended or the listener
	// fails. hosts are what the command may reach in addition: see [Box.Reaching]. Variables name the proxy, whose
	// address is [ProxyAddress], to programs. nil: commands have no network.
	Serve     func(ctx context.Context, l net.Listener, hosts []string) error
	Variables []string
	// Protected returns why a path of the workspace must not be changed, as the end of a sentence that begins with it,
	// and "" if it may. It is called for paths that changed. made is the file or link that is to take the place of what
	// is there; "": the path is removed, or a directory changes as a whole. nil: nothing is protected.
	Protected func(path, made string) string
}

// A Box is a place where commands run, one after the other or at the same time. Its methods are safe for concurrent
// use.
type Box struct {
	spec  Spec
	way   way
	hosts []string // what its commands reach in addition to what the proxy allows all
	alone bool     // their layers over caches are their own
	*sharedUse
}

// A sharedUse is what all views of a box share.
type sharedUse struct {
	mu    sync.Mutex
	stays int
}

// Reaching returns the same box for commands that may also reach hosts, which Spec.Serve gets.
func (b *Box) Reaching(hosts []string) *Box {
	other := *b
	other.hosts = hosts
	return &other
}

// LivingAlone returns the same box for commands that live while others come and go: what they write in the layers over
// caches is theirs alone, and the others go on sharing theirs.
func (b *Box) LivingAlone() *Box {
	other := *b
	other.alone = true
	return &other
}

// New returns a box, after it has tried it, which takes about 20 ms. An error wraps [ErrNone] if the system offers no
// box for this workspace.
func New(spec Spec) (*Box, error) { return newBox(spec, waysToHold()) }

// newBox returns a box that holds commands in the first of the ways that the system lets it.
func newBox(spec Spec, ways []way) (*Box, error) {
	for _, path := range append([]string{spec.Workspace, spec.Private}, spec.Layers...) {
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("a box needs absolute paths, and %q is none", path)
		}
	}
	var err error
	if spec.Workspace, err = filepath.EvalSymlinks(spec.Workspace); err != nil {
		return nil, fmt.Errorf("the workspace of a box: %w", err)
	}
	if spec.Private, err = filepath.EvalSymlinks(spec.Private); err != nil {
		return nil, fmt.Errorf("the private directory of a box: %w", err)
	}
	if overlaps(spec.Workspace, spec.Private) {
		return nil, fmt.Errorf("%w for a workspace that holds raddle's own files, or lies among them", ErrNone)
	}
	b := &Box{spec: spec, sharedUse: &sharedUse{}}
	if err := os.MkdirAll(b.TempDir(), 0o700); err != nil {
		return nil, err
	}
	return b, b.tryBox(ways)
}

// TempDir returns the directory of temporary files, which all commands of the box share.
func (b *Box) TempDir() string { return filepath.Join(b.spec.Private, "tmp") }

// A Description says how commands are held.
type Description struct {
	Way     string   // the means of the system, as the end of a sentence
	Missing []string // what is not held, each as a sentence without its period
	Layer   bool     // what a command writes lies in a layer until it has ended
	Network bool     // commands reach hosts through the proxy
}

// hiddenPaths returns what the commands of the box must not read.
func (b *Box) hiddenPaths() []string {
	if b.spec.Hidden == nil {
		return nil
	}
	return b.spec.Hidden()
}

// A PathChange is what a command did to a path of the workspace.
type PathChange struct {
	Path string // relative to the workspace, with slashes
	Kind ChangeKind
	// Late says that the change had been made before it was known, so that what was there before cannot be read any
	// more. Old is what it was as far as that was kept: nil if the path is new.
	Late bool
	Old  *OldFile
}

// An OldFile is a file or link as it was before a change that was found later.
type OldFile struct {
	Mode fs.FileMode
	Size int64
	Data []byte // the content, if Kept
	Kept bool
}

// A ChangeKind says what happened to a path.
type ChangeKind string

// The kinds of changes.
const (
	Created ChangeKind = "created"
	Changed ChangeKind = "changed"
	Removed ChangeKind = "removed"
)

// A Held is a change that did not reach the workspace.
type Held struct {
	PathChange
	Why string // as the end of a sentence that begins with the path
}

// An Remains is what a command left behind.
type Remains struct {
	// Changes are files and links, and directories that were removed or are new and empty, in the order of their paths.
	Changes []PathChange
	Held    []Held // what stays in the layer, and is thrown away with the box
}

// sortChanges puts the changes in the order of their paths.
func (r *Remains) sortChanges() {
	slices.SortFunc(r.Changes, func(a, b PathChange) int { return strings.Compare(a.Path, b.Path) })
}

// ProxyAddress is the address of the proxy in the network of a box.
const ProxyAddress = "127.0.0.1:3128"

// temporaryVariables name the directory of temporary files.
var temporaryVariables = []string{"TMPDIR", "TMP", "TEMP"}

// boxedEnvironment returns an environment for a command in a box: with its directory of temporary files, and without
// sockets of agents outside.
func (b *Box) boxedEnvironment(env []string) []string {
	gone := slices.Concat(variableNames(b.spec.Variables), []string{"SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "GPG_AGENT_INFO", "DOCKER_HOST", "XDG_RUNTIME_DIR"}, temporaryVariables)
	kept := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(gone, name)
	})
	for _, name := range temporaryVariables {
		kept = append(kept, name+"="+b.TempDir())
	}
	return append(kept, "PYTHONDONTWRITEBYTECODE=1")
}

// variableNames returns the names of variables.
func variableNames(variables []string) (names []string) {
	for _, entry := range variables {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	return names
}

// Run runs a command in the box and moves what it wrote into the workspace, however it ends. before, which may be nil,
// is called before each change of a file. An error of the command is that of [proc.Run]; one that wraps [ErrNone] says
// that the command did not run.
func (b *Box) Run(ctx context.Context, c proc.Command, before func(PathChange)) (proc.Result, Remains, error) {
	stay, err := b.EnterBox(ctx, c)
	if err != nil {
		return proc.Result{ExitCode: -1}, Remains{}, err
	}
	res, err := proc.Run(ctx, stay.Command)
	failed := stay.DescribeFailure()
	o, leaveErr := stay.LeaveBox(before)
	if failed != nil {
		return res, o, failed
	}
	return res, o, errors.Join(err, leaveErr)
}

// A Stay is the time of one command in a box.
type Stay struct {
	// Command is what to run in place of the command that was given to Enter.
	Command proc.Command

	box     *Box
	dir     string // what only this stay uses
	began   time.Time
	control *control
	was     treeState // the workspace before the command, if the box has no layer
	copies  copies    // of files of the workspace as they were then

	endService func() error // waits until nothing is served to the command any more; nil: nothing is
}

// overlaps reports whether one of two directories lies in the other.
func overlaps(a, b string) bool { return isWithin(a, b) || isWithin(b, a) }

// isWithin reports whether a path is a directory or lies in it. Both are absolute and clean.
func isWithin(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator)))
	return ok && (rest == "" || os.IsPathSeparator(rest[0]))
}
