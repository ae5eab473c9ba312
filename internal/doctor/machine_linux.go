package doctor

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// networks are the file systems of other machines, by their magic numbers (statfs(2)).
var networks = map[int64]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "SMB",
	unix.SMB2_SUPER_MAGIC: "SMB",
	unix.AFS_SUPER_MAGIC:  "AFS", unix.CODA_SUPER_MAGIC: "Coda", unix.NCP_SUPER_MAGIC: "NetWare",
	unix.CEPH_SUPER_MAGIC: "Ceph",
	0x0bd00bd0:            "Lustre", 0x01161970: "GFS2", 0x47504653: "GPFS",
}

// disk describes the file system of a folder.
func disk(dir string) (diskState, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return diskState{}, err
	}
	if s.Blocks == 0 { // a file system without a disk, such as /proc
		return diskState{}, errors.ErrUnsupported
	}
	return diskState{free: s.Bavail * uint64(s.Bsize), files: s.Ffree, limited: s.Files > 0,
		network: networks[int64(uint32(s.Type))]}, nil
}

// listener describes the process that listens on a TCP port, by the tables in /proc. It
// returns "" if this user may not know.
func listener(port int) string {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		readSockets(table, port, sockets)
	}
	if len(sockets) == 0 {
		return ""
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		files, err := os.ReadDir(filepath.Join(process, "fd"))
		if err != nil {
			continue // of another user, or it has ended
		}
		for _, file := range files {
			if to, err := os.Readlink(filepath.Join(process, "fd", file.Name())); err == nil && sockets[to] {
				name, _ := os.ReadFile(filepath.Join(process, "comm"))
				return fmt.Sprintf("process %s (%s)", filepath.Base(process), strings.TrimSpace(string(name)))
			}
		}
	}
	return ""
}

// readSockets adds the sockets that listen on a port, as links of files name them.
func readSockets(table string, port int, sockets map[string]bool) {
	f, err := os.Open(table)
	if err != nil {
		return
	}
	defer f.Close()
	const listening, maxTable = "0A", 4 << 20
	lines := bufio.NewScanner(io.LimitReader(f, maxTable))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || fields[3] != listening {
			continue
		}
		_, hexadecimal, _ := strings.Cut(fields[1], ":")
		if n, err := strconv.ParseInt(hexadecimal, 16, 32); err == nil && int(n) == port {
			sockets["socket:["+fields[9]+"]"] = true
		}
	}
}

// quarantined returns false: only macOS marks programs.
func quarantined(string) bool { return false }

// watches returns how many folders this user may watch.
func watches() int {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_watches")
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}
