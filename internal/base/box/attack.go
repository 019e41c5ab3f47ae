package box

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/proc"
)

// An attack is a shell text that prints ESCAPED if the box does not hold.
type attack struct{ name, script string }

// attacks are tried by [Box.AttackBox]. OUTSIDE is a file outside of the box, PORT a server outside, SOCKET one that is
// a file, and PID a process outside.
var attacks = []attack{
	{"", `echo x > "$OUTSIDE"; chmod 777 "$OUTSIDE"; rm -f "$OUTSIDE"`}, // the file itself is looked at afterwards
	{"it reaches a server of this machine", `(exec 3<>/dev/tcp/127.0.0.1/$PORT) && echo ESCAPED`},
	{"it reaches the network", `(exec 3<>/dev/tcp/192.0.2.1/80) && echo ESCAPED`},
	{"it sees processes outside", `[ -r /proc/$PID/environ ] && tr '\0' '\n' < /proc/$PID/environ | grep -q . && [ "$(cat /proc/$PID/comm)" = raddle ] && echo ESCAPED`},
	{"it signals processes outside", `[ $PID -gt 2000 ] && kill -0 $PID && echo ESCAPED`},
	{"it mounts", `mount -t tmpfs x /mnt && echo ESCAPED; mount --bind / /mnt && echo ESCAPED`},
	{"it makes namespaces", `unshare -Ur true && echo ESCAPED`},
	{"it has rights", `grep -Eq 'Cap(Eff|Prm):.*[1-9a-f]' /proc/self/status && echo ESCAPED`},
	{"it may get new rights", `grep -q 'NoNewPrivs:.*0' /proc/self/status && echo ESCAPED`},
	{"it changes settings of the kernel", `echo x > /proc/sys/kernel/domainname && echo ESCAPED`},
	{"it has disks", `for d in /dev/sd* /dev/vd* /dev/nvme* /dev/mem /dev/kmsg; do timeout 1 head -c 1 "$d" | grep -q . && echo ESCAPED; done`},
	{"it changes modes of files outside", `chmod 600 "$OUTSIDE" && [ -f "$OUTSIDE" ] && echo ESCAPED`},
}

// AttackBox tries to break out of the box and returns the attacks that did, and how many were tried. env is the
// environment of commands.
func (b *Box) AttackBox(ctx context.Context, env []string) (escaped []string, tried int, err error) {
	dir, err := os.MkdirTemp("", "raddle-attack-")
	if err != nil {
		return nil, 0, err
	}
	defer os.RemoveAll(dir)
	outside := filepath.Join(dir, "outside")
	if err := os.WriteFile(outside, []byte("untouched"), 0o600); err != nil {
		return nil, 0, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, 0, err
	}
	defer l.Close()
	env = append(env[:len(env):len(env)], "OUTSIDE="+outside, "PID="+strconv.Itoa(os.Getpid()), "PORT="+strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	for _, a := range attacks {
		stay, err := b.EnterBox(ctx, proc.Command{Path: "bash", Args: []string{"-c", a.script}, Dir: b.spec.Workspace, Env: env})
		if err != nil {
			return escaped, tried, err
		}
		res, err := proc.Run(ctx, stay.Command)
		_, leaveErr := stay.LeaveBox(nil)
		if _, failed := errors.AsType[*proc.ExitError](err); err != nil && !failed || leaveErr != nil {
			return escaped, tried, fmt.Errorf("attack the box: %w", errors.Join(err, leaveErr))
		}
		tried++
		if strings.Contains(string(res.Stdout), "ESCAPED") {
			escaped = append(escaped, a.name)
		}
	}
	// Caches and directories of temporary files are covered by layers: what counts is the file itself.
	if data, err := plainfile.Read(outside, 1<<10); err != nil || string(data) != "untouched" {
		escaped = append(escaped, "it changed a file outside of the workspace")
	}
	return escaped, tried, nil
}
