package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"knowhow/internal/source"
)

// Limits on counting the files of a folder before a confirmation.
const (
	maxCounted   = 100_000
	maxCountTime = 2 * time.Second
)

// confirmSource asks for confirmation before a folder is indexed that is rarely
// intended: a whole disk, a home folder, or a folder that contains the home
// folder. Without a terminal and without --yes it is refused.
func (v *invocation) confirmSource(ctx context.Context, o *serveCommand, path string) error {
	what := source.Vast(path, v.home())
	if what == "" || o.Yes {
		return nil
	}
	counting, cancel := context.WithTimeout(ctx, maxCountTime)
	defer cancel()
	n, all := source.CountFiles(counting, path, maxCounted)
	count := thousands(n) + " files"
	switch {
	case !all:
		count = "more than " + count
	case n == 1:
		count = "1 file"
	}
	refused := &hintError{fmt.Errorf("%s is %s, with %s", path, what, count), "Name a smaller folder, or add --yes to index all of them."}
	in, ok := v.stdin.(*os.File)
	if !ok || o.Transport == "stdio" || !term.IsTerminal(int(in.Fd())) {
		return refused
	}
	fmt.Fprintf(v.stderr, "%s is %s, with %s. Index all of them? [y/N] ", printableLines(path), what, count)
	answer, err := readLine(ctx, in)
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &hintError{errors.New("nothing was indexed"), "Name a smaller folder."}
}

// thousands formats a non-negative number with commas: 100,000.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// readLine reads a line from a terminal. When ctx ends, it returns at once; the
// pending read cannot be interrupted.
func readLine(ctx context.Context, in *os.File) (string, error) {
	type outcome struct {
		line string
		err  error
	}
	read := make(chan outcome, 1)
	go func() {
		line, err := bufio.NewReader(in).ReadString('\n')
		read <- outcome{line, err}
	}()
	select {
	case o := <-read:
		if o.err != nil && o.line == "" {
			return "", errors.New("reading the answer: the input has ended")
		}
		return o.line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
