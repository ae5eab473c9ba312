package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"time"
)

const versionHelp = `Usage: {cmd} [--json]

Prints the version, the commit that the program was built from, and the version
of Go.

{flags}

Examples:
  {cmd}
  {cmd} --json
`

// A versionCommand prints the version information recorded in the build.
type versionCommand struct {
	jsonFlag
}

func (o *versionCommand) run(_ context.Context, v *invocation) error {
	info, _ := debug.ReadBuildInfo()
	if o.JSON {
		return json.NewEncoder(v.stdout).Encode(buildOf(info))
	}
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
// v0.0.0-20260102150405-abcdefabcdef. It contains the time of the commit and the
// beginning of its hash, which "go install module@version" does not record otherwise.
var pseudoVersion = regexp.MustCompile(`[-.](\d{14})-([0-9a-f]{12})(\+incompatible)?(\+dirty)?$`)

// A build describes the program. Commit and Date are "" if the build does not
// record them. Date is the time of the commit in RFC 3339.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// buildOf returns the build that info, which may be nil, describes.
func buildOf(info *debug.BuildInfo) build {
	b := build{Version: versionOf(info), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	settings := settingsOf(info)
	b.Commit, b.Date = settings["vcs.revision"], settings["vcs.time"]
	if m := pseudoVersion.FindStringSubmatch(b.Version); m != nil {
		if b.Commit == "" {
			b.Commit = m[2]
		}
		if at, err := time.Parse("20060102150405", m[1]); err == nil && b.Date == "" {
			b.Date = at.Format(time.RFC3339)
		}
	}
	return b
}

// settingsOf returns the settings in info, which may be nil.
func settingsOf(info *debug.BuildInfo) map[string]string {
	settings := map[string]string{}
	if info != nil {
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	return settings
}

// commitOf returns the commit that the program was built from, or the reason
// why info, which may be nil, does not contain it.
func commitOf(info *debug.BuildInfo) string {
	commit, version := buildOf(info).Commit, versionOf(info)
	switch {
	case commit == "" && version != "devel":
		return "of the tag " + version
	case commit == "":
		return "unknown: go run does not record it; build with go build -buildvcs=true in a clone of the repository"
	case settingsOf(info)["vcs.modified"] == "true":
		return commit + " (modified)"
	}
	return commit
}
