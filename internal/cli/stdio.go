package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"knowhow/internal/mcpserver"
)

// The time limits for the request of a client whose server cannot start.
const (
	clientTime = 3 * time.Second // on stdio: a client sends it at once
	strayTime  = time.Second     // over HTTP: there is probably no client
)

// transport returns the transport of a server whose command line may be invalid.
func (f *flagSet) transport(args []string) string {
	d := f.find("transport")
	switch {
	case d == nil:
		return "http"
	case d.Value == "stdio":
		return "stdio" // mcp
	}
	transport := d.Default
	if value := f.get(d.Env); value != "" {
		transport = value
	}
	for i, arg := range args {
		name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case name != d.Name || !strings.HasPrefix(arg, "-"):
		case hasValue:
			transport = value
		case i+1 < len(args):
			transport = args[i+1]
		}
	}
	return transport
}

// serveStdio serves the client on stdin until it disconnects or ctx ends.
func (v *invocation) serveStdio(ctx context.Context, server *mcpserver.Server) error {
	v.served = true
	return server.ServeStdio(ctx, v.stdin, v.stdout)
}

// refuseClient tells the client that started a server why it cannot start. err
// was printed before, but clients show only the answer to their request.
func (v *invocation) refuseClient(ctx context.Context, f *flagSet, args []string, err error) {
	if err == nil || errors.Is(err, errHelp) || v.served || ctx.Err() != nil || !isServer(v.command) {
		return
	}
	limit := clientTime
	if f.transport(args) != "stdio" {
		if limit = strayTime; !v.stdinIsPipe() {
			return
		}
	}
	if in, ok := v.stdin.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		return
	}
	text := v.name + " cannot start: " + boundLines(message(err))
	if hint := v.advice(err); hint != "" {
		text += ". " + hint
	}
	if limit == strayTime {
		text = strings.TrimSuffix(text, ".") + ". " + stdioAdvice
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	mcpserver.RefuseStdio(ctx, v.stdin, v.stdout, text)
}

// stdioAdvice is for clients that start a server over HTTP and send requests to
// its standard input.
const stdioAdvice = `To let a client start the program, configure "knowhow mcp" in place of "knowhow serve"; for other servers, set KNOWHOW_TRANSPORT=stdio`

// refuseStray tells a client that started an HTTP server what to do instead, if
// it sends a request to stdin. Nothing but a pipe is read, and it only to the
// first line that is no message. The server continues to run.
func (v *invocation) refuseStray(ctx context.Context, url string) {
	if v.served || !v.stdinIsPipe() {
		return
	}
	v.served = true
	text := fmt.Sprintf("%s listens on %s and not on standard input. %s. Or connect to that address", v.name, url, stdioAdvice)
	go mcpserver.RefuseStdio(ctx, v.stdin, v.stdout, text) // ends with ctx, except for a pending read
}

// stdinIsPipe reports whether stdin is a pipe, or the socket that some programs
// use in its place.
func (v *invocation) stdinIsPipe() bool {
	in, ok := v.stdin.(*os.File)
	if !ok {
		return false
	}
	info, err := in.Stat()
	return err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0
}
