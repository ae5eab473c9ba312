package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

const versionHelp = `Usage: {cmd}

Prints the version, the commit that it was built from, and the version of Go.

Example:
  {cmd}
`

// runVersion prints what the build says of itself.
func runVersion(_ context.Context, v *invocation, args []string) error {
	if err := v.parse(v.newFlags(), args, nil); err != nil {
		return err
	}
	commit := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				commit += " (modified)"
			}
		}
	}
	_, err := fmt.Fprintf(v.stdout, "%s %s\ncommit %s\n%s %s/%s\n",
		v.Program, version(), commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// version returns the main module's version, "devel" for a build that has
// none.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
