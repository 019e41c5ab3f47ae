package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"raddle.dev/internal/base/box"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/proc"
	"raddle.dev/tool"
)

// outsideParam asks for a run outside of the box.
var outsideParam = param{
	name:  "outside_box",
	flag:  true,
	about: "true: run it outside of the box, where it reaches other machines and all files. A person is asked unless a rule allows it: only after the box has stopped it",
}

// hostsParam names hosts that the command reaches from the box.
var hostsParam = param{
	name:  "hosts",
	about: "Hosts that the command must reach, such as registry.npmjs.org, separated by blanks; with :PORT if it is none of the web. Name those that the box has refused, or that you know the command needs. A person is asked about hosts that no rule allows",
}

// touchBox adds to what a call touches what it says about the box.
func touchBox(h Host, a arguments, touch tool.Touch) (tool.Touch, error) {
	touch.Boxes, touch.Unboxed = canBox(h, a), asksOutside(h, a)
	if !touch.Boxes {
		return touch, nil
	}
	if a[hostsParam.name] != "" {
		if place, err := h.Box(); err == nil && !place.DescribeBox().Network {
			return tool.Touch{}, errors.New("hosts: the box reaches no hosts on this system. Call again with outside_box true and without hosts: a person is asked")
		}
	}
	for _, host := range strings.FieldsFunc(a[hostsParam.name], func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		if strings.ContainsAny(host, "/*@?\\") || strings.HasPrefix(host, ".") {
			return tool.Touch{}, fmt.Errorf("hosts: %q is not the name of a host: write names such as registry.npmjs.org, without a scheme, a path or a star", host)
		}
		touch.Network = append(touch.Network, strings.ToLower(host))
	}
	return touch, nil
}

// canBox reports whether a call can run in the box: there is one, and the model has not asked for a run outside of it.
func canBox(h Host, a arguments) bool { return h.Box != nil && !asksOutside(h, a) }

// asksOutside reports whether there is a box, and the model asks for a run outside of it.
func asksOutside(h Host, a arguments) bool { return h.Box != nil && a[outsideParam.name] == "true" }

// maxBoxedImages is how many files that a command changes in the box are recorded with their contents. Of more, only
// the first ones can be taken back.
const maxBoxedImages = 200

// A boxedRun is a command in the box, with what it changed.
type boxedRun struct {
	host    Host
	before  []boxedImage
	outcome box.Remains
	network bool // the box reaches hosts
}

// A boxedImage is a file before a command changed it.
type boxedImage struct {
	path string
	old  oldImage
}

// openPlace returns the box for the call, with the hosts that it may reach.
func (b *boxedRun) openPlace() (*box.Box, error) {
	if b.host.Box == nil {
		return nil, errors.New("the command may only run in a box, and there is none")
	}
	place, err := b.host.Box()
	if err != nil {
		return nil, err
	}
	b.network = place.DescribeBox().Network
	return place.Reaching(b.host.permit.Hosts), nil
}

// runCommand runs a command in the box, and moves what it wrote into the workspace, however it ends.
func (b *boxedRun) runCommand(ctx context.Context, c proc.Command) (proc.Result, error) {
	place, err := b.openPlace()
	if err != nil {
		return proc.Result{}, err
	}
	res, outcome, err := place.Run(ctx, c, b.keepImage)
	b.outcome = outcome
	return res, err
}

// imageBefore returns the state of a path before a command in the box changes it, or as it was before, if the change
// was found later.
func imageBefore(h Host, change box.PathChange, path string) oldImage {
	switch old := change.Old; {
	case !change.Late:
		return h.readImage(path, os.Lstat)
	case old == nil:
		return oldImage{}
	default:
		image := oldImage{image: &tool.FileImage{Mode: old.Mode.Perm(), Size: old.Size}, withheld: tool.WithheldSpecial}
		if old.Mode.IsRegular() {
			image.withheld = tool.WithheldSecret
		}
		if old.Kept && !h.hidesContent(realPath(path)) {
			image.withheld = readContent(bytes.NewReader(old.Data), image.image)
		}
		return image
	}
}

// keepImage keeps a file as it is before it changes.
func (b *boxedRun) keepImage(change box.PathChange) {
	if len(b.before) < maxBoxedImages && !strings.HasPrefix(change.Path, ".git/") && !strings.Contains(change.Path, "/.git/") {
		path := filepath.Join(b.host.Workspace, filepath.FromSlash(change.Path))
		b.before = append(b.before, boxedImage{path, imageBefore(b.host, change, path)})
	}
}

// A BoxedCall is a call of a tool of another package whose process runs in the box of a host.
type BoxedCall struct{ run boxedRun }

// NewBoxedCall returns a call with a permit, for one process.
func NewBoxedCall(h Host, p *tool.Permit) *BoxedCall {
	h.permit = p
	return &BoxedCall{boxedRun{host: h}}
}

// TempDir returns a directory that exists inside of the box and outside of it.
func (c *BoxedCall) TempDir() (string, error) {
	place, err := c.run.openPlace()
	if err != nil {
		return "", err
	}
	return place.TempDir(), nil
}

// RunCommand runs the process to its end, and moves what it wrote into the workspace.
func (c *BoxedCall) RunCommand(ctx context.Context, cmd proc.Command) (proc.Result, error) {
	return c.run.runCommand(ctx, cmd)
}

// AddReport adds to the result of the call what the box did, and what the process changed.
func (c *BoxedCall) AddReport(name string, r tool.Result) tool.Result {
	report := c.run.describeBox(r.Error)
	var lines []string
	if report.NotChanged != "" {
		lines = append(lines, "Not changed:\n"+report.NotChanged)
	}
	if report.RefusedHosts != "" {
		lines = append(lines, "Refused hosts: "+report.RefusedHosts)
	}
	if report.Box != "" {
		lines = append(lines, "This ran in a box: no network but hosts that rules allow, no secrets, changes only in the workspace and in $TMPDIR. The user can let it run outside of the box with a rule that allows "+name+".")
	}
	if len(lines) > 0 {
		r.Content = append(slices.Clone(r.Content), tool.TextResult(strings.Join(lines, "\n")).Content...)
	}
	return c.run.addChanges(r)
}

// maxHeldNames is how many of the files that the box held back a model is shown.
const maxHeldNames = 20

// A boxReport is what a model reads about what the box did to a command.
type boxReport struct {
	NotChanged   string `json:"not_changed,omitempty"`
	RefusedHosts string `json:"refused_hosts,omitempty"`
	Box          string `json:"box,omitempty"`
}

// describeBox returns what the box did to a command that has ended. The receiver may be nil: the command did not run in
// the box.
func (b *boxedRun) describeBox(failed bool) (r boxReport) {
	if b == nil {
		return r
	}
	if held := b.outcome.Held; len(held) > 0 {
		var lines []string
		for _, h := range held[:min(len(held), maxHeldNames)] {
			lines = append(lines, h.Path+" "+h.Why)
		}
		if len(held) > maxHeldNames {
			lines = append(lines, "and more")
		}
		r.NotChanged = strings.Join(lines, "\n")
	}
	var refused []string
	if b.host.RefusedHosts != nil {
		refused = b.host.RefusedHosts()
	}
	r.RefusedHosts = strings.Join(refused, ", ")
	if failed || len(refused) > 0 {
		network := "no network but hosts that rules allow"
		if !b.network {
			network = "no network, not even servers that the command starts itself"
		}
		r.Box = "This ran in a box: " + network + ", no secrets, changes only in the workspace and in $TMPDIR. " + boxAdvice(refused)
	}
	return r
}

// addFields adds the report to a result.
func (r boxReport) addFields(fields map[string]string) {
	for name, text := range map[string]string{"not_changed": r.NotChanged, "refused_hosts": r.RefusedHosts, "box": r.Box} {
		if text != "" {
			fields[name] = text
		}
	}
}

// boxAdvice says what a model can do about a command that the box has stopped, with the hosts that were refused.
func boxAdvice(refused []string) string {
	if len(refused) > 0 {
		return fmt.Sprintf("If it needs the refused hosts, call again with hosts %q: it then runs in the box, and a person is asked about the hosts.", strings.Join(refused, " "))
	}
	return "If that is why it failed, call again with outside_box true; a person is then asked."
}

// addChanges returns a result with the changes of files. The receiver may be nil.
func (b *boxedRun) addChanges(r tool.Result) tool.Result {
	if b == nil {
		return r
	}
	for _, image := range b.before {
		var after *string
		if data, err := readRegular(image.path); err == nil {
			text := string(data)
			after = &text
		} else if !errors.Is(err, os.ErrNotExist) {
			continue
		}
		r = image.old.addChange(r, image.path, after)
	}
	return r
}

// readRegular returns the content of a regular file.
func readRegular(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	}
	return plainfile.Read(path, info.Size()+1)
}
