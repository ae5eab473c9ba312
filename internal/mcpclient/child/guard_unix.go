//go:build unix

package child

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// guardScript reads "+PGID" and "-PGID" lines. Its stdin ends when we do,
// however that happens. It then ends the groups that are left, and the
// processes that have left them but bear our mark, its argument, in their
// environment. Only Linux shows that.
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
for p in $(grep -lsF "` + markName + `=$1" /proc/[0-9]*/environ); do
	p=${p%/environ}
	kill -s KILL "${p#/proc/}"
done
`

const (
	// markName is the environment variable by which the processes of a family
	// are known after they have left its group.
	markName = "KNOWHOW_CHILD"

	// reapTime is how often the zombies of orphans are reaped.
	reapTime = 10 * time.Second
)

// A Guard ends what our children have started: orphans that have left their
// process group, when their family ends, and everything, when we are killed and
// cannot. A small process of its own does the latter. The zero Guard starts it
// with the first child.
type Guard struct {
	mu     sync.Mutex
	cmd    *exec.Cmd // nil where none runs
	pipe   *os.File
	groups map[int]bool

	mark   string        // the marks of all families begin with it; "" before the first start
	marks  int           // that were given
	adopts bool          // orphans of our families become our children
	alone  bool          // and nobody else's do
	stop   chan struct{} // closed to end the goroutine that reaps
	reaper sync.WaitGroup
}

// ready starts the guard unless it runs, and returns the mark of a new family,
// "" where marks are of no use. running is false where there is no shell.
func (g *Guard) ready() (mark string, running bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd == nil && g.startLocked() != nil {
		return "", false
	}
	if !g.adopts {
		return "", true
	}
	g.marks++
	return fmt.Sprintf("%s%d.", g.mark, g.marks), true
}

func (g *Guard) startLocked() error {
	if g.mark == "" {
		// Where another program of ours has started us, its mark comes first.
		g.mark = os.Getenv(markName) + rand.Text() + "."
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command("/bin/sh", "-c", guardScript, "sh", g.mark)
	// It needs none of our secrets. Its own mark keeps others from ending it.
	cmd.Stdin, cmd.Dir, cmd.Env = r, "/", []string{"PATH=/usr/bin:/bin", markName + "=guard"}
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
	if !g.adopts {
		g.adoptLocked()
	}
	return nil
}

// adoptLocked makes orphans our children, where the system can.
func (g *Guard) adoptLocked() {
	if g.adopts = becomeSubreaper(g.cmd.Process); !g.adopts {
		return
	}
	g.alone = true
	endOrphans(func(environ []byte) bool {
		// A shell that was replaced by us has left its own children to us.
		g.alone = g.alone && hasMark(environ, "")
		return false
	})
	stop := make(chan struct{})
	g.stop = stop
	g.reaper.Go(func() {
		ticker := time.NewTicker(reapTime)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				endOrphans(func([]byte) bool { return false })
			case <-stop:
				return
			}
		}
	})
}

// hasMark reports whether an environment has a mark that begins with mark.
func hasMark(environ []byte, mark string) bool {
	return bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+markName+"="+mark))
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

// Close ends the orphans that are left, and the guard. There must be no children
// any more.
func (g *Guard) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stop != nil {
		close(g.stop)
		g.reaper.Wait()
		g.stop, g.adopts = nil, false
		endOrphans(func(environ []byte) bool {
			return hasMark(environ, g.mark) || g.alone && !hasMark(environ, "")
		})
	}
	if g.cmd != nil {
		g.endLocked()
	}
}
