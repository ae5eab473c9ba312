package mcpserver

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// allLines returns the lines of r, and how they end.
func allLines(r io.Reader, limit int) ([]string, error) {
	lines, done := make(chan line), make(chan struct{})
	defer close(done)
	go readLines(r, limit, lines, done)
	var got []string
	for {
		switch l := <-lines; {
		case errors.Is(l.err, errTooLong):
			got = append(got, "TOO LONG")
		case l.err != nil:
			return got, l.err
		default:
			got = append(got, string(l.data))
		}
	}
}

func TestReadLines(t *testing.T) {
	long := strings.Repeat("x", 100_000) // more than the reader's buffer
	for _, tc := range []struct {
		name, in string
		limit    int
		want     []string
	}{
		{"nothing", "", 10, nil},
		{"lines", "a\nb\r\nc\n", 10, []string{"a\n", "b\r\n", "c\n"}},
		{"a last line without its newline", "a\nb", 10, []string{"a\n", "b"}},
		{"blank lines", "\n \na\n\t\r\n", 10, []string{"a\n"}},
		{"a byte order mark", "\uFEFFa\n\uFEFFb\n", 10, []string{"a\n", "\uFEFFb\n"}},
		{"just short enough", "123456789\nb\n", 9, []string{"123456789\n", "b\n"}},
		{"just short enough at the end", "a\n123456789", 9, []string{"a\n", "123456789"}},
		{"too long", "1234567890\nb\n", 9, []string{"TOO LONG", "b\n"}},
		{"too long at the end", "a\n1234567890", 9, []string{"a\n", "TOO LONG"}},
		{"long", long + "\na\n", 100_000, []string{long + "\n", "a\n"}},
		{"long and too long", long + "\na\n", 99_999, []string{"TOO LONG", "a\n"}},
	} {
		for name, r := range map[string]io.Reader{"at once": strings.NewReader(tc.in),
			"in bytes": iotest.OneByteReader(strings.NewReader(tc.in))} {
			got, err := allLines(r, tc.limit)
			if d := cmp.Diff(tc.want, got); d != "" || !errors.Is(err, io.EOF) {
				t.Errorf("%s, %s: ends with %v (-want +got):\n%s", tc.name, name, err, d)
			}
		}
	}
	broken := errors.New("broken")
	if got, err := allLines(io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(broken)), 10); !errors.Is(err,
		broken) || len(got) != 1 {
		t.Errorf("lines before an error = %q, %v", got, err)
	}
}

// A reader without a receiver ends.
func TestReadLinesDone(t *testing.T) {
	done, ended := make(chan struct{}), make(chan struct{})
	close(done)
	go func() {
		defer close(ended)
		readLines(strings.NewReader(strings.Repeat("a\n", 100)), 10, make(chan line), done)
	}()
	<-ended
}

// FuzzReadLines says that nothing but blank lines and long ones is lost.
func FuzzReadLines(f *testing.F) {
	for _, seed := range []string{"", "a\nb", "\r\n\n", "\uFEFFa\n", "0123456789\na", "\x00\xff\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 8
		got, err := allLines(bytes.NewReader(in), limit)
		if !errors.Is(err, io.EOF) {
			t.Fatalf("ends with %v", err)
		}
		var want []string
		for _, l := range bytes.SplitAfter(bytes.TrimPrefix(in, []byte("\uFEFF")), []byte("\n")) {
			switch {
			case len(bytes.TrimSuffix(l, []byte("\n"))) > limit:
				want = append(want, "TOO LONG")
			case len(bytes.TrimSpace(l)) > 0:
				want = append(want, string(l))
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("lines of %q (-want +got):\n%s", in, d)
		}
	})
}
