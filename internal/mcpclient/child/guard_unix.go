//go:build unix

package child

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// guardScript reads "+PGID" and "-PGID" lines. Its stdin ends when we do,
// however that comes about; what groups are left then lost their master.
const guardScript = `trap '' HUP INT TERM
groups=' '
while read -r line; do
	case $line in
	+*) groups="$groups${line#+} " ;;
	-*) g=${line#-}
		case $groups in *" $g "*) groups="${groups%%" $g "*} ${groups#*" $g "}" ;; esac ;;
	esac
done
[ "$groups" = ' ' ] && exit 0
for g in $groups; do kill -s TERM -- "-$g"; done
sleep 1
for g in $groups; do kill -s KILL -- "-$g"; done
`

// A Guard is a small process that ends the process groups of our children when
// we are killed and cannot. The zero guard starts it with the first child.
type Guard struct {
	mu     sync.Mutex
	cmd    *exec.Cmd // nil where none runs
	pipe   *os.File
	groups map[int]bool
}

// ready starts the guard unless it runs. It is false where there is no shell.
func (g *Guard) ready() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cmd != nil || g.startLocked() == nil
}

func (g *Guard) startLocked() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command("/bin/sh", "-c", guardScript)
	cmd.Stdin, cmd.Dir, cmd.Env = r, "/", []string{"PATH=/usr/bin:/bin"} // it needs none of our secrets
	// A session of its own, so that it outlives a group that is killed and
	// a terminal that is closed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return err
	}
	g.cmd, g.pipe = cmd, w
	if g.groups == nil {
		g.groups = map[int]bool{}
	}
	return nil
}

// add puts a process group under guard.
func (g *Guard) add(pgid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd != nil {
		g.groups[pgid] = true
		g.tellLocked("+%d\n", pgid)
	}
}

// remove takes a process group out of guard. The group's leader must not have
// been reaped.
func (g *Guard) remove(pgid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd != nil {
		delete(g.groups, pgid)
		g.tellLocked("-%d\n", pgid)
	}
}

// tellLocked writes a line to the guard. One that has died is replaced by
// another, which hears of all the groups.
func (g *Guard) tellLocked(format string, pgid int) {
	if _, err := fmt.Fprintf(g.pipe, format, pgid); err == nil {
		return
	}
	g.endLocked()
	if g.startLocked() != nil {
		return
	}
	for pgid := range g.groups {
		_, _ = fmt.Fprintf(g.pipe, "+%d\n", pgid) // a second death is not looked for
	}
}

func (g *Guard) endLocked() {
	_ = g.pipe.Close()
	_ = g.cmd.Wait() // it ends with its input
	g.cmd, g.pipe = nil, nil
}

// Close ends the guard. There must be no children any more.
func (g *Guard) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd != nil {
		g.endLocked()
	}
}
