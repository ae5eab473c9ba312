package mcpserver

import (
	"context"
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// RefuseStdio answers the requests of the client on in with an error, for a
// program that cannot serve it: of a program that ends, clients show nothing to
// their users but the answer to initialize. It returns after that answer, when
// in or ctx ends, or after a line that is not a message of JSON-RPC, and reports
// whether it answered a request.
//
// A read of in cannot be interrupted: after the end of ctx, one goroutine reads
// until in ends.
func RefuseStdio(ctx context.Context, in io.Reader, out io.Writer, message string) (answered bool) {
	refusal := newError(codeUnavailable, sentence(message), map[string]any{"code": "NOT_SERVED", "retryable": false})
	lines, done := make(chan line), make(chan struct{})
	defer close(done)
	go readLines(in, maxLine, lines, done)
	for {
		var l line
		select {
		case <-ctx.Done():
			return answered
		case l = <-lines:
		}
		if errors.Is(l.err, errTooLong) {
			continue
		}
		p := parse(l.data, false)
		if l.err != nil || len(p.messages) == 0 {
			return answered
		}
		initialize := false
		for _, m := range p.messages {
			r, ok := m.(*jsonrpc.Request)
			if !ok || !r.IsCall() {
				continue
			}
			if _, err := out.Write(append(errorResponse(r.ID, refusal), '\n')); err != nil {
				return answered
			}
			answered = true
			initialize = initialize || r.Method == methodInitialize
		}
		if initialize {
			return answered
		}
	}
}
