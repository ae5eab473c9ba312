package doctor

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// program checks the running program, and those with its name on the PATH.
func (e *examiner) program(ctx context.Context) []Finding {
	self := Finding{Level: OK, Subject: "program",
		Message: fmt.Sprintf("%s %s, %s/%s, %s", e.Program, e.Build, runtime.GOOS, runtime.GOARCH, e.Executable)}
	if temporary(e.Executable) {
		self.Level, self.Message = Warning, self.Message+" is a temporary file, which clients will not find later"
		self.Fix = "Install the program, and connect clients with the installed one."
	}
	findings := []Finding{self}
	if e.machine.quarantined(e.Executable) {
		findings = append(findings, Finding{Level: Warning, Subject: "program",
			Message: fmt.Sprintf("%s was downloaded by a browser, and macOS refuses to start it for clients",
				e.Executable),
			Fix: fmt.Sprintf("Type: xattr -d com.apple.quarantine %s", e.word(e.Executable))})
	}
	return append(findings, e.onPath(ctx)...)
}

// temporary reports whether a program is where "go run" puts it.
func temporary(path string) bool {
	return strings.Contains(filepath.ToSlash(path), "/go-build")
}

// onPath checks the programs on the PATH.
func (e *examiner) onPath(ctx context.Context) (findings []Finding) {
	const subject = "PATH"
	found, plain := e.programs()
	for _, path := range plain {
		findings = append(findings, Finding{Level: Warning, Subject: subject,
			Message: fmt.Sprintf("%s cannot be executed, so the PATH leads past it", path),
			Fix:     fmt.Sprintf("Type: chmod +x %s", e.word(path))})
	}
	if len(found) == 0 {
		// The check of clients finds entries that need it.
		return append(findings, ok(subject, "there is no program %s; connected clients have the whole path", e.Program))
	}
	first := found[0]
	switch b, err := e.buildOf(ctx, first); {
	case SameFile(first, e.Executable):
		findings = append(findings, ok(subject, "the program on the PATH is this one"))
	case errors.Is(err, errOther):
		findings = append(findings, Finding{Level: Error, Subject: subject,
			Message: fmt.Sprintf("%s, the first %s on the PATH, is another program", first, e.Program),
			Fix: fmt.Sprintf("Remove or rename it, or move %s to the front of the PATH.",
				filepath.Dir(e.Executable))})
	case err != nil:
		findings = append(findings, Finding{Level: Error, Subject: subject,
			Message: fmt.Sprintf("%s, the first %s on the PATH, does not start: %s", first, e.Program, e.reason(err)),
			Fix:     "Install it again, or remove it."})
	case !b.same(e.Build):
		findings = append(findings, Finding{Level: Warning, Subject: subject,
			Message: fmt.Sprintf("%s, the first %s on the PATH, is version %s, and this is version %s", first,
				e.Program, b,
				e.Build),
			Fix: fmt.Sprintf("Update it, or remove it and put %s on the PATH.", filepath.Dir(e.Executable))})
	default:
		findings = append(findings, ok(subject, "%s has the same version", first))
	}
	for _, path := range found[1:] {
		b, err := e.buildOf(ctx, path)
		if err == nil && b.same(e.Build) {
			continue
		}
		version := "of another version: " + b.String()
		if err != nil {
			version = "of an unknown version"
		}
		findings = append(findings, Finding{Level: Warning, Subject: subject,
			Message: fmt.Sprintf("there is a second %s on the PATH, %s, %s; which one a client starts depends on its PATH",
				e.Program, path, version),
			Fix: fmt.Sprintf("Remove it, or connect clients with %q, which writes the whole path.",
				e.Program+" connect")})
	}
	return findings
}

// programs returns the programs with the name of this one on the PATH, each file once,
// and files with that name that cannot be executed.
func (e *examiner) programs() (found, plain []string) {
	names := []string{e.Program}
	if e.GOOS == "windows" {
		names = []string{e.Program + ".exe", e.Program + ".cmd", e.Program + ".bat"}
	}
	for _, dir := range filepath.SplitList(e.get("PATH")) {
		if !filepath.IsAbs(dir) { // "" and "." depend on the working directory, which clients have not
			continue
		}
		for _, name := range names {
			path := filepath.Join(dir, name)
			info, err := os.Stat(path)
			switch {
			case err != nil || !info.Mode().IsRegular():
			case e.GOOS != "windows" && info.Mode()&0o111 == 0:
				plain = append(plain, path)
			case !slices.ContainsFunc(found, func(other string) bool { return SameFile(other, path) }):
				found = append(found, path)
			}
		}
	}
	return found, plain
}

// SameFile reports whether two paths lead to the same file.
func SameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// errOther reports that a program is not this one.
var errOther = errors.New("another program")

// buildOf returns the build of the program at path. What a build of Go records is read
// from the file. Other files, such as scripts of package managers, are started. The
// error is errOther for another program.
func (e *examiner) buildOf(ctx context.Context, path string) (Build, error) {
	if info, err := buildinfo.ReadFile(path); err == nil {
		own := "github.com/knowhow-mcp/knowhow"
		if info.Main.Path != own {
			return Build{}, errOther
		}
		b := Build{Version: info.Main.Version}
		if b.Version == "" || b.Version == "(devel)" {
			b.Version = "devel"
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Commit = s.Value
			}
		}
		return b, nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.Limit/3)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "version")
	out := &limited{limit: 4096}
	cmd.Stdout = out
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
			return Build{}, errOther
		}
		return Build{}, err
	}
	return parseVersion(e.Program, out.b.String())
}

// parseVersion reads the output of the command version.
func parseVersion(program, out string) (Build, error) {
	first, rest, _ := strings.Cut(out, "\n")
	version, found := strings.CutPrefix(strings.TrimSpace(first), program+" ")
	if !found || version == "" || strings.ContainsAny(version, " \t") {
		return Build{}, errOther
	}
	b := Build{Version: version}
	second, _, _ := strings.Cut(rest, "\n")
	if commit, found := strings.CutPrefix(second, "commit "); found {
		if fields := strings.Fields(commit); len(fields) > 0 && len(fields[0]) >= shortCommit {
			b.Commit = fields[0]
		}
	}
	return b, nil
}

// A limited keeps the beginning of what is written to it.
type limited struct {
	b     bytes.Buffer
	limit int
}

var _ io.Writer = (*limited)(nil)

// Write keeps what is within the limit.
func (l *limited) Write(p []byte) (int, error) {
	l.b.Write(p[:min(len(p), max(0, l.limit-l.b.Len()))])
	return len(p), nil
}
