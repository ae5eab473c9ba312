package cli

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
)

const versionHelp = `Usage: {cmd}

Prints the version, the commit that the program was built from, and the version
of Go.

Example:
  {cmd}
`

// A versionCommand prints the version information recorded in the build.
type versionCommand struct{}

func (*versionCommand) run(_ context.Context, v *invocation) error {
	info, _ := debug.ReadBuildInfo()
	_, err := fmt.Fprintf(v.stdout, "%s %s\ncommit %s\n%s %s/%s\n",
		v.Program, versionOf(info), commitOf(info), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// version returns the version of the program, or "devel" if the build does not
// record it.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info)
}

// versionOf returns the version of the main module, or "devel" if info, which
// may be nil, does not contain one.
func versionOf(info *debug.BuildInfo) string {
	if info == nil || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}

// pseudoVersion matches the end of a pseudo-version, such as
// v0.0.0-20260102150405-abcdefabcdef. It contains the beginning of the commit,
// which "go install module@version" does not record otherwise.
var pseudoVersion = regexp.MustCompile(`[-.]\d{14}-([0-9a-f]{12})(\+incompatible)?(\+dirty)?$`)

// commitOf returns the commit that the program was built from, or the reason
// why info, which may be nil, does not contain it.
func commitOf(info *debug.BuildInfo) string {
	if info == nil {
		info = &debug.BuildInfo{}
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	commit := settings["vcs.revision"]
	if m := pseudoVersion.FindStringSubmatch(info.Main.Version); commit == "" && m != nil {
		commit = m[1]
	}
	switch {
	case commit == "" && versionOf(info) != "devel":
		return "of the tag " + info.Main.Version
	case commit == "":
		return "unknown: go run does not record it; build with go build -buildvcs=true in a clone of the repository"
	case settings["vcs.modified"] == "true":
		return commit + " (modified)"
	}
	return commit
}
