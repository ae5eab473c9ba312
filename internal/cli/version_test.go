package cli

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVersion(t *testing.T) {
	const commit = "e46927362994b60995d5ac7fa1444e50b86c5efa"
	info := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: commit}
	for _, tt := range []struct {
		name            string
		info            *debug.BuildInfo
		version, commit string
	}{
		{"go build in a clone", info("v0.0.0-20261122191834-e46927362994", revision),
			"v0.0.0-20261122191834-e46927362994", commit},
		{"go build of changed files", info("(devel)", revision, debug.BuildSetting{Key: "vcs.modified", Value: "true"}),
			"devel", commit + " (modified)"},
		{"go install module@latest", info("v1.2.4-0.20261122191834-e46927362994"),
			"v1.2.4-0.20261122191834-e46927362994", "e46927362994"},
		{"go install module@v1.2.3", info("v1.2.3"), "v1.2.3", "of the tag v1.2.3"},
		{"go run", info("(devel)"), "devel", "unknown: go run does not record it"},
		{"no information", nil, "devel", "unknown: "},
	} {
		if got := versionOf(tt.info); got != tt.version {
			t.Errorf("%s: version %q, want %q", tt.name, got, tt.version)
		}
		if got := commitOf(tt.info); !strings.HasPrefix(got, tt.commit) {
			t.Errorf("%s: commit %q, want %q", tt.name, got, tt.commit)
		}
	}
}

func TestVersionJSON(t *testing.T) {
	const commit = "e46927362994b60995d5ac7fa1444e50b86c5efa"
	for _, tt := range []struct {
		name string
		info *debug.BuildInfo
		want build
	}{
		{"go build at a tag", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: commit}, {Key: "vcs.time", Value: "2026-11-22T19:18:34Z"}}},
			build{Version: "v1.2.3", Commit: commit, Date: "2026-11-22T19:18:34Z"}},
		{"go install module@latest",
			&debug.BuildInfo{Main: debug.Module{Version: "v1.2.4-0.20261122191834-e46927362994"}},
			build{Version: "v1.2.4-0.20261122191834-e46927362994", Commit: "e46927362994",
				Date: "2026-11-22T19:18:34Z"}},
		{"go install module@v1.2.3", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, build{Version: "v1.2.3"}},
		{"no information", nil, build{Version: "devel"}},
	} {
		tt.want.Go, tt.want.OS, tt.want.Arch = runtime.Version(), runtime.GOOS, runtime.GOARCH
		if diff := cmp.Diff(tt.want, buildOf(tt.info)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
