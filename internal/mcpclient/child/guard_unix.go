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

// guardScript reads lines "+PGID" and "-PGID". Its stdin ends when this program
// ends, for whatever reason. It then ends the remaining groups, and the
// processes that have left them but have our mark, its argument, in their
// environment, which can be read only on Linux.
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
	// markName is the environment variable that identifies the processes of a
	// family after they have left its group.
	markName = "KNOWHOW_CHILD"

	// reapTime is the interval at which zombies of orphans are reaped.
	reapTime = 10 * time.Second
)

// A Guard ends the descendants of our children: those that have left their
// process group when their family ends, and all of them when this program is
// killed. For the latter it runs a small process. The zero Guard starts it with
// the first child.
type Guard struct {
	mu     sync.Mutex
	cmd    *exec.Cmd // nil if it is not running
	pipe   *os.File
	groups map[int]bool

	mark   string        // prefix of the marks of all families; "" before the first start
	marks  int           // number of marks in use so far
	adopts bool          // orphans of our families become our children
	alone  bool          // and no other orphans do
	stop   chan struct{} // closed to end the goroutine that reaps
	reaper sync.WaitGroup
}

// ready starts the guard unless it is running, and returns the mark of a new
// family, or "" if marks have no effect. running is false if there is no shell.
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
		// If this program was started by another instance, its mark comes
		// first.
		g.mark = os.Getenv(markName) + rand.Text() + "."
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command("/bin/sh", "-c", guardScript, "sh", g.mark)
	// It needs no secrets. Its own mark keeps other guards from ending it.
	cmd.Stdin, cmd.Dir, cmd.Env = r, "/", []string{"PATH=/usr/bin:/bin", markName + "=guard"}
	// It runs in a separate session, so that it outlives a killed group and a
	// closed terminal.
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

// adoptLocked makes orphans our children, if the system supports it.
func (g *Guard) adoptLocked() {
	if g.adopts = becomeSubreaper(g.cmd.Process); !g.adopts {
		return
	}
	g.alone = true
	endOrphans(func(environ []byte) bool {
		// A shell that was replaced by this program has left its children to
		// us.
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

// add adds a process group to the guard.
func (g *Guard) add(pgid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd != nil {
		g.groups[pgid] = true
		g.tellLocked("+%d\n", pgid)
	}
}

// remove removes a process group from the guard. The leader of the group must
// not have been reaped.
func (g *Guard) remove(pgid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd != nil {
		delete(g.groups, pgid)
		g.tellLocked("-%d\n", pgid)
	}
}

// tellLocked writes a line to the guard. If the guard has died, it is replaced,
// and the new one gets all groups.
func (g *Guard) tellLocked(format string, pgid int) {
	if _, err := fmt.Fprintf(g.pipe, format, pgid); err == nil {
		return
	}
	g.endLocked()
	if g.startLocked() != nil {
		return
	}
	for pgid := range g.groups {
		_, _ = fmt.Fprintf(g.pipe, "+%d\n", pgid) // a second failure is ignored
	}
}

func (g *Guard) endLocked() {
	_ = g.pipe.Close()
	_ = g.cmd.Wait() // it ends at the end of its input
	g.cmd, g.pipe = nil, nil
}

// Close ends the remaining orphans and the guard. There must be no children
// left.
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
