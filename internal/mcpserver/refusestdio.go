package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// RefuseStdio answers the requests of the client on in with an error, for a
// program that cannot serve it: of a program that ends, clients show nothing to
// their users but the answer to initialize. It returns after that answer, or when
// in or ctx ends. A line that is not a message of JSON-RPC is answered as by
// ServeStdio. If stray is set, in need not be that of a client, and such a line
// ends RefuseStdio without an answer.
//
// A read of in cannot be interrupted: after the end of ctx, one goroutine reads
// until in ends.
func RefuseStdio(ctx context.Context, in io.Reader, out io.Writer, message string, stray bool) {
	refusal := newError(codeUnavailable, sentence(message), map[string]any{"code": "NOT_SERVED", "retryable": false})
	lines, done := make(chan line), make(chan struct{})
	defer close(done)
	go readLines(in, maxLine, lines, done)
	for {
		var l line
		select {
		case <-ctx.Done():
			return
		case l = <-lines:
		}
		var p payload
		switch {
		case errors.Is(l.err, errTooLong):
			p.bad = []json.RawMessage{lineTooLong()}
		case l.err != nil:
			return
		default:
			p = parse(l.data, false)
		}
		if stray && len(p.messages) == 0 {
			return
		}
		answers, initialize := p.bad, false
		for _, m := range p.messages {
			if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
				answers = append(answers, errorResponse(r.ID, refusal))
				initialize = initialize || r.Method == methodInitialize
			}
		}
		for _, a := range answers {
			if _, err := out.Write(append(a, '\n')); err != nil {
				return
			}
		}
		if initialize {
			return
		}
	}
}
