package mcptest

import (
	"bufio"
	"context"
	"io"
	"sync"
	"testing"
)

// Stdio starts serve on a pair of pipes and returns a client. The server ends
// with the test at the latest. To test how the server ends, wrap t.Context or
// another context in serve.
func Stdio(t testing.TB, serve func(ctx context.Context, in io.Reader, out io.Writer) error) *Session {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	s := newSession(t)
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		err := serve(ctx, inR, outW)
		outW.Close() // never fails for a pipe
		served <- err
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.readLines(outR)
	}()
	lines := make(chan string, 4096)
	go func() { // a server that stops reading must not block the test
		for l := range lines {
			if _, err := io.WriteString(inW, l+"\n"); err != nil {
				break
			}
		}
		inW.Close() // never fails for a pipe
		for range lines {
		}
	}()
	s.send = func(line string) { lines <- line }
	s.end = sync.OnceValue(func() error {
		close(lines)
		err := <-served
		<-read
		cancel()
		inR.Close() // never fails for a pipe
		return err
	})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("serving stdio: %v", err)
		}
	})
	return s
}

// readLines receives what the server writes until it ends.
func (s *Session) readLines(r io.Reader) {
	defer close(s.inbox)
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		s.receive(sc.Text())
	}
	if err := sc.Err(); err != nil {
		s.t.Errorf("reading from the server: %v", err)
	}
}
