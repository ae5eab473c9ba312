package release

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// versionPattern matches the versions that can be released.
var versionPattern = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$`)

// Changelog moves the files of changelog/unreleased to changelog/vVERSION.md, which
// is also the text about the release. A file becomes an item of the list there.
// root is the folder of the repository.
func Changelog(root, version string, date time.Time) error {
	if !versionPattern.MatchString(version) {
		return fmt.Errorf("%q is not a version such as 1.2.3: %w", version, errkind.Invalid)
	}
	dir := filepath.Join(root, "changelog")
	to := filepath.Join(dir, "v"+version+".md")
	if _, err := os.Stat(to); err == nil {
		return fmt.Errorf("%s exists: %w", to, errkind.Conflict)
	}
	names, err := filepath.Glob(filepath.Join(dir, "unreleased", "*.md")) // sorted
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("there are no files in %s: %w", filepath.Join(dir, "unreleased"), errkind.NotFound)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# v%s, %s\n\n", version, date.Format(time.DateOnly))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		b.WriteString(item(string(text)))
	}
	if err := os.WriteFile(to, []byte(b.String()), 0o644); err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// relativeLink matches the beginning of a link from changelog/unreleased to a file
// outside of changelog.
var relativeLink = regexp.MustCompile(`\]\(\.\./\.\./`)

// item returns a text as an item of a list, with its links as they are one folder
// higher.
func item(text string) string {
	text = relativeLink.ReplaceAllString(strings.TrimSpace(text), "](../")
	var b strings.Builder
	b.WriteString("- ")
	for i, line := range strings.Split(text, "\n") {
		if i > 0 && line != "" {
			b.WriteString("  ")
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
