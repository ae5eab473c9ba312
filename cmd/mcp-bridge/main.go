// Mcp-bridge turns MCP servers into Agent Skills. It provides the commands
// sync, start and call of knowhow under the name in its specification.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/knowhow-mcp/knowhow/internal/cli"
)

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		cause := cli.SignalError{Signal: <-signals}
		signal.Stop(signals) // a second signal ends the program at once
		cancel(cause)
	}()
	stdout := cli.Prepare()
	os.Exit(cli.Main(ctx, os.Args[1:], cli.Env{Program: "mcp-bridge", Commands: []string{"sync", "start", "call"},
		Lookup: os.LookupEnv}, os.Stdin, stdout, os.Stderr))
}
