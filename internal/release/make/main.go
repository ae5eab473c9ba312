// Make makes the files of a release that goreleaser does not make. Run it in the
// folder of the repository. docs/releasing.md has the order of the commands.
//
// Usage:
//
//	go run ./internal/release/make docs PROGRAM        # release/out: completions and pages for man
//	go run ./internal/release/make packages            # dist/npm, dist/pypi, dist/gemini and dist/bundles
//	go run ./internal/release/make server              # dist/server.json, of the files in dist/mcpb
//	go run ./internal/release/make changelog VERSION   # changelog/vVERSION.md
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/release"
)

const (
	dist = "dist"        // folder of goreleaser
	docs = "release/out" // folder of completions and pages for man
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "make:", err)
		os.Exit(1)
	}
}

// run runs the command in args.
func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "docs":
		return release.Docs(ctx, args[1], docs)
	case len(args) == 2 && args[0] == "changelog":
		return release.Changelog(".", args[1], time.Now())
	case len(args) == 1 && args[0] == "packages":
		r, err := release.Open(".", dist)
		if err != nil {
			return err
		}
		if err := r.NPM(".", dist+"/npm"); err != nil {
			return err
		}
		if err := r.Wheels(".", docs, dist+"/pypi"); err != nil {
			return err
		}
		if err := r.Gemini(".", dist+"/gemini"); err != nil {
			return err
		}
		return r.Bundles(".", dist+"/bundles")
	case len(args) == 1 && args[0] == "server":
		r, err := release.Open(".", dist)
		if err != nil {
			return err
		}
		return r.Server(".", dist+"/mcpb", dist)
	}
	return fmt.Errorf("want docs PROGRAM, packages, server or changelog VERSION, got %q", args)
}
