package release

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// completionFiles are the names of the scripts for the completion of shells, as their
// shells expect them.
var completionFiles = map[string]string{
	"bash": "knowhow", "zsh": "_knowhow", "fish": "knowhow.fish", "powershell": "knowhow.ps1",
}

// seeAlso matches the entry of a command on the page for man of the program.
var seeAlso = regexp.MustCompile(`(?m)^\.BR knowhow\\-(\S+) \(1\)$`)

// Docs writes what a program prints about itself to a folder: the scripts for
// shells to completions, in a folder for each shell, and the pages for man,
// compressed, to man.
func Docs(ctx context.Context, program, dir string) error {
	run := func(args ...string) ([]byte, error) {
		out, err := exec.CommandContext(ctx, program, args...).Output()
		if err != nil {
			return nil, fmt.Errorf("running %s: %w", strings.Join(args, " "), err)
		}
		return out, nil
	}
	for shell, name := range completionFiles {
		script, err := run("completion", shell)
		if err != nil {
			return err
		}
		if err := write(dir, file{"completions/" + shell + "/" + name, 0o644, script}); err != nil {
			return err
		}
	}
	overview, err := run("help", "--man")
	if err != nil {
		return err
	}
	commands := seeAlso.FindAllSubmatch(overview, -1)
	if len(commands) == 0 {
		return fmt.Errorf("the page for man of %s lists no commands: %w", program, errkind.NotFound)
	}
	if err := writePage(dir, "knowhow", overview); err != nil {
		return err
	}
	for _, m := range commands {
		name := strings.ReplaceAll(string(m[1]), `\-`, "-")
		page, err := run(append([]string{"help", "--man"}, strings.Split(name, "-")...)...)
		if err != nil {
			return err
		}
		if err := writePage(dir, "knowhow-"+name, page); err != nil {
			return err
		}
	}
	return nil
}

// writePage writes a compressed page for man.
func writePage(dir, name string, page []byte) error {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(page); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return write(dir, file{"man/" + name + ".1.gz", 0o644, b.Bytes()})
}
