package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// A process is a server that runs until it is stopped.
type process struct {
	name string
	log  string // file with its output
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// startProcess starts a server in dir, with its output in the file log.
func startProcess(name, log, dir, program string, args ...string) (*process, error) {
	return startIn(endWithParent(), name, log, dir, program, args...)
}

func startIn(attr *syscall.SysProcAttr, name, log, dir, program string, args ...string) (*process, error) {
	f, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &process{name: name, log: log, cmd: exec.Command(program, args...), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, f, f
	p.cmd.SysProcAttr = attr
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		p.cmd.Wait() // ready and stop report how it ended if that matters
		close(p.done)
	}()
	return p, nil
}

// stop ends a server and waits until it has ended.
func (p *process) stop() {
	if p == nil {
		return
	}
	select {
	case <-p.done:
		return
	default:
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		p.cmd.Process.Kill()
		<-p.done
	}
	syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // the group may include a running job of Fess
	if use, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		fmt.Printf("%s stopped; it took up to %d MiB of memory and %v of processor time\n", p.name, use.Maxrss>>10,
			(p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()).Round(time.Second))
	}
}

// kill ends a server at once and waits until it has ended.
func (p *process) kill() {
	if p != nil {
		p.cmd.Process.Kill() // an error means that it has ended
		<-p.done
	}
}

// ready waits until a URL of the server answers 200 with a body that accept, if
// not nil, accepts.
func (p *process) ready(ctx context.Context, url string, accept func(body []byte) bool) error {
	err := until(ctx, 3*time.Minute, func(ctx context.Context) (bool, error) {
		select {
		case <-p.done:
			return false, fmt.Errorf("%s ended: %v", p.name, p.cmd.ProcessState)
		default:
		}
		status, body, err := get(ctx, url)
		return err == nil && status == http.StatusOK && (accept == nil || accept(body)), nil
	})
	if err != nil {
		text, _ := os.ReadFile(p.log)
		return fmt.Errorf("starting %s: %w\n%s", p.name, err, bytes.TrimSpace(text[max(0, len(text)-3000):]))
	}
	return nil
}

// get returns the status of a GET and at most a mebibyte of the body.
func get(ctx context.Context, url string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := client().Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, body, err
}

// until calls so twice a second until it returns true, returns an error, or
// limit has passed.
func until(ctx context.Context, limit time.Duration, so func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no success within %v", limit))
	defer cancel()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := so(ctx); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
