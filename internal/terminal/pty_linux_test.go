package terminal_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"knowhow/internal/terminal"
)

// pseudoTerminal returns both ends of a terminal of 60 columns.
func pseudoTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 60})
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

func TestBarOnATerminal(t *testing.T) {
	master, slave := pseudoTerminal(t)
	lines := terminal.NewLines(slave, nil)
	if !lines.Terminal() {
		t.Fatal("Terminal() = false for a terminal")
	}
	lines.Show(terminal.Bar{What: "indexing docs", Done: 5, Total: 10})
	lines.Show(terminal.Bar{})
	fmt.Fprintln(lines, "the end")
	s := &screen{}
	for buf := make([]byte, 1000); !strings.Contains(s.all.String(), "the end"); {
		n, err := master.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		s.Write(buf[:n])
	}
	if all := s.all.String(); !strings.Contains(all, "indexing docs: 5 of 10 [") {
		t.Errorf("no bar was shown: %q", all)
	}
	if got := strings.TrimSpace(s.shows()); got != "the end" {
		t.Errorf("the screen shows %q, want the bar gone", got)
	}
}
