package mcpclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/mcpclient/child"
	"github.com/knowhow-mcp/knowhow/internal/mcpclient/redact"
	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
)

const (
	grace = time.Second            // time for a child to end by itself, and again after SIGTERM
	drain = 250 * time.Millisecond // how long to wait for the output of a dead child

	// closedTime is how long a child that has closed a pipe may take to end. On a
	// busy machine, the end of a process is noticed some seconds after that of its
	// output.
	closedTime = 5 * time.Second

	maxPost = 1000 // frames without a response that may be queued for a child
)

// A processLink is a child process that reads and writes newline-delimited
// JSON-RPC on its stdin and stdout. It has four goroutines: one writes, two
// read, and one waits for the end of the child.
type processLink struct {
	sess   *session
	family *child.Family
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *os.File

	wake   chan struct{} // capacity 1: there is something to write, or writing has ended
	read   chan struct{} // closed at the end of stdout
	heard  chan struct{} // closed at the end of stderr
	exited chan struct{} // closed when the child is reaped; exit is set then
	exit   string
	wg     sync.WaitGroup

	mu     sync.Mutex
	queue  []outgoing
	posted int // queued frames that belong to no call
	halted bool
}

// An outgoing frame is queued for writing.
type outgoing struct {
	frame []byte
	call  *call // nil if there is no response
}

// startProcess starts the server's command in a separate process group and
// makes it the session's link.
func startProcess(ctx context.Context, srv *mcpsettings.Server, sess *session, g *child.Guard) error {
	env := os.Environ()
	for name, v := range srv.Env {
		env = append(env, name+"="+v)
	}
	cmd, err := child.Command(srv.Command, srv.Args, srv.Dir, env)
	if err != nil {
		return &fault{err: err, final: true}
	}
	l := &processLink{
		sess: sess, cmd: cmd,
		wake: make(chan struct{}, 1), read: make(chan struct{}), heard: make(chan struct{}),
		exited: make(chan struct{}),
	}
	sess.link, sess.tail = l, redact.NewTail(sess.redact)
	if err := l.start(g); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	l.wg.Go(l.write)
	l.wg.Go(func() { l.readLines(ctx) })
	l.wg.Go(func() {
		defer close(l.heard)
		sess.tail.Follow(ctx, sess.server, sess.log, l.stderr)
	})
	l.wg.Go(l.await)
	return nil
}

// start creates the pipes and the child. The pipes are plain files, so that
// waiting for the child does not wait for processes that inherited its output.
func (l *processLink) start(g *child.Guard) (err error) {
	var files []*os.File
	pipe := func() (r, w *os.File) {
		if err != nil {
			return nil, nil
		}
		if r, w, err = os.Pipe(); err == nil {
			files = append(files, r, w)
		}
		return r, w
	}
	in, stdin := pipe()
	stdout, out := pipe()
	stderr, errOut := pipe()
	if err == nil {
		l.cmd.Stdin, l.cmd.Stdout, l.cmd.Stderr = in, out, errOut
		l.stdin, l.stdout, l.stderr = stdin, stdout, stderr
		l.family, err = child.Start(l.cmd, g)
	}
	if err != nil {
		for _, f := range files {
			_ = f.Close()
		}
		// The error contains the path from the settings, but no arguments.
		final := errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission)
		return &fault{err: fmt.Errorf("starting the command: %w", err), final: final}
	}
	_ = in.Close()
	_ = out.Close()
	_ = errOut.Close()
	return nil
}

func (l *processLink) send(_ context.Context, c *call, frame []byte) error {
	return l.enqueue(outgoing{frame, c})
}

func (l *processLink) post(_ context.Context, frame []byte) {
	l.mu.Lock()
	flood := l.posted >= maxPost
	l.mu.Unlock()
	if flood {
		l.sess.fail(fmt.Errorf("the server does not read its input: %d messages wait for it", maxPost))
		return
	}
	_ = l.enqueue(outgoing{frame, nil}) // there is no response to wait for
}

func (l *processLink) enqueue(o outgoing) error {
	l.mu.Lock()
	if l.halted {
		l.mu.Unlock()
		return errHalted
	}
	l.queue = append(l.queue, o)
	if o.call == nil {
		l.posted++
	}
	l.mu.Unlock()
	l.wakeWriter()
	return nil
}

// wakeWriter wakes the writer.
func (l *processLink) wakeWriter() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *processLink) withdraw(c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, o := range l.queue {
		if o.call == c {
			l.queue = append(l.queue[:i], l.queue[i+1:]...)
			return true
		}
	}
	return !c.sent.Load()
}

func (l *processLink) agreed(context.Context, string) {}

func (l *processLink) halt() {
	l.mu.Lock()
	l.halted, l.queue, l.posted = true, nil, 0
	l.mu.Unlock()
	l.wakeWriter()
}

// take moves queued frames into buf, about 64 KiB at once, and marks them as
// sent. more is false if there will be no further frames.
func (l *processLink) take(buf []byte) (_ []byte, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for n < len(l.queue) && len(buf) < 64<<10 {
		o := l.queue[n]
		if o.call != nil {
			o.call.sent.Store(true)
		} else {
			l.posted--
		}
		buf = append(buf, o.frame...)
		n++
	}
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	return buf, !l.halted
}

// write writes the queued frames, until the link is halted or the child has
// closed its stdin. The end of stdin tells the child to end.
func (l *processLink) write() {
	defer l.stdin.Close()
	var buf []byte
	for range l.wake {
		for {
			var more bool
			if buf, more = l.take(buf[:0]); !more {
				return
			}
			if len(buf) == 0 {
				break
			}
			if _, err := l.stdin.Write(buf); err != nil {
				l.broken("its input")
				return
			}
			if cap(buf) > 1<<20 {
				buf = nil
			}
		}
	}
}

// broken ends the session after a pipe was closed. If the child has died, its
// death is the reason.
func (l *processLink) broken(pipe string) {
	select {
	case <-l.exited:
	case <-l.sess.over:
	case <-time.After(closedTime):
		l.sess.fail(errors.New("the server closed " + pipe + " and still runs"))
	}
}

// readLines hands the lines of the child's stdout to the session.
func (l *processLink) readLines(ctx context.Context) {
	br := bufio.NewReaderSize(l.stdout, 64<<10)
	for {
		line, err := readLine(br)
		l.sess.receive(ctx, nil, line)
		if errors.Is(err, errTooLong) {
			close(l.read)
			l.sess.fail(err)
			return
		}
		if err != nil {
			break
		}
	}
	close(l.read)
	l.broken("its output")
}

// errTooLong ends a connection.
var errTooLong = fmt.Errorf("the server sent a message of more than %d MiB", maxMessage>>20)

// readLine returns the next line, which is valid until the next call. At the
// end of br it returns the rest, with the error.
func readLine(br *bufio.Reader) ([]byte, error) {
	line, err := br.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	long := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(long) > maxMessage {
			return nil, errTooLong
		}
		line, err = br.ReadSlice('\n')
		long = append(long, line...)
	}
	return long, err
}

// await waits for the end of the child, waits until its output is read, and
// ends the session.
func (l *processLink) await() {
	state := l.family.Reap(l.cmd)
	deadline := time.Now().Add(drain)
	_ = l.stdout.SetReadDeadline(deadline) // a process outside the group may have the other end open
	_ = l.stderr.SetReadDeadline(deadline)
	timeout := time.NewTimer(2 * drain)
	defer timeout.Stop()
	for _, end := range []chan struct{}{l.read, l.heard} {
		select {
		case <-end:
		case <-timeout.C: // on a platform without deadlines for pipes
			_ = l.stdout.Close()
			_ = l.stderr.Close()
		}
	}
	l.exit = state
	close(l.exited)
	l.sess.fail(fmt.Errorf("the server ended (%s); look at what it wrote, or start its command by hand", l.exit))
}

func (l *processLink) close(hurry <-chan struct{}) {
	l.halt() // the writer closes stdin
	_ = l.stdin.SetWriteDeadline(time.Now())
	end := func(limit time.Duration) bool {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		select {
		case <-l.exited:
			return true
		case <-hurry:
		case <-timer.C:
		}
		return false
	}
	if !end(grace) {
		l.family.Terminate()
		if !end(grace) {
			l.family.Kill()
			<-l.exited
		}
	}
	_ = l.stdout.Close()
	_ = l.stderr.Close()
	l.wg.Wait()
}
