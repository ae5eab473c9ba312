// Package release makes the packages of a release from the programs that
// goreleaser built: packages of npm, wheels of PyPI, MCP bundles, extensions of
// the Gemini CLI, the entry of the MCP registry, and the changelog. Equal input
// gives equal files.
package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// Names under which the program is published. The files in the folder release
// name it, too.
const (
	npmName     = "knowhow"                       // of the main package of npm
	npmScope    = "@knowhow-mcp"                  // of the packages with the programs
	wheelName   = "knowhow-mcp"                   // on PyPI, where knowhow belongs to others
	registry    = "io.github.knowhow-mcp/knowhow" // in the MCP registry
	repository  = "https://github.com/knowhow-mcp/knowhow"
	description = "Gives AI agents access to an organisation's documents through the Model Context Protocol (MCP)"
	license     = "Apache-2.0"
	placeholder = `"0.0.0"` // the version in the files in the folder release
)

// A Platform is an operating system and an architecture, as Go names them.
type Platform struct{ OS, Arch string }

// exe returns the name of the program on the platform.
func (p Platform) exe() string {
	if p.OS == "windows" {
		return "knowhow.exe"
	}
	return "knowhow"
}

// node returns the platform as Node.js names it: values of process.platform and
// process.arch.
func (p Platform) node() (platform, arch string) {
	platform, arch = p.OS, p.Arch
	if platform == "windows" {
		platform = "win32"
	}
	if arch == "amd64" {
		arch = "x64"
	}
	return platform, arch
}

// wheel returns the compatibility tags of the platform. The programs for Linux are
// static, so that they run with every C library.
func (p Platform) wheel() []string {
	switch p {
	case Platform{"linux", "amd64"}:
		return []string{"manylinux_2_17_x86_64", "manylinux2014_x86_64", "musllinux_1_1_x86_64"}
	case Platform{"linux", "arm64"}:
		return []string{"manylinux_2_17_aarch64", "manylinux2014_aarch64", "musllinux_1_1_aarch64"}
	case Platform{"darwin", "amd64"}:
		return []string{"macosx_12_0_x86_64"} // the oldest macOS that Go supports
	case Platform{"darwin", "arm64"}:
		return []string{"macosx_12_0_arm64"}
	case Platform{"windows", "amd64"}:
		return []string{"win_amd64"}
	case Platform{"windows", "arm64"}:
		return []string{"win_arm64"}
	}
	return nil
}

// A Release is what goreleaser built.
type Release struct {
	Version  string              // without "v"
	Date     time.Time           // of the commit; the time of all files
	Programs map[Platform]string // file of the program knowhow
}

// Open reads what goreleaser wrote to a folder. root is the folder of the
// repository, from which goreleaser was started.
func Open(root, dist string) (*Release, error) {
	var meta struct{ Version string }
	name := filepath.Join(dist, "metadata.json")
	if err := readJSON(name, &meta); err != nil {
		return nil, err
	}
	info, err := os.Stat(name) // the date in the file is when goreleaser ran
	if err != nil {
		return nil, err
	}
	var artifacts []struct {
		Path, Goos, Goarch, Type string
		Extra                    struct{ ID string }
	}
	if err := readJSON(filepath.Join(dist, "artifacts.json"), &artifacts); err != nil {
		return nil, err
	}
	r := &Release{Version: meta.Version, Date: info.ModTime().UTC().Truncate(time.Second), Programs: map[Platform]string{}}
	for _, a := range artifacts {
		if a.Type == "Binary" && a.Extra.ID == "knowhow" {
			file := a.Path
			if !filepath.IsAbs(file) {
				file = filepath.Join(root, filepath.FromSlash(file))
			}
			r.Programs[Platform{a.Goos, a.Goarch}] = file
		}
	}
	if len(r.Programs) == 0 {
		return nil, fmt.Errorf("%s has no program: %w", dist, errkind.NotFound)
	}
	return r, nil
}

// platforms returns the platforms in order.
func (r *Release) platforms() []Platform {
	var all []Platform
	for p := range r.Programs {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Platform) int { return strings.Compare(a.OS+"/"+a.Arch, b.OS+"/"+b.Arch) })
	return all
}

// readJSON decodes a file.
func readJSON(file string, to any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	return nil
}

// versioned returns a file of the folder release with the version in place of
// 0.0.0.
func (r *Release) versioned(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(data, []byte(placeholder)) {
		return nil, fmt.Errorf("%s does not have the version %s: %w", file, placeholder, errkind.Invalid)
	}
	version, err := json.Marshal(r.Version)
	if err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(data, []byte(placeholder), version), nil
}

// pythonVersions match semantic versions, and pythonVersion has how PyPI writes
// their ends.
var (
	pythonVersions = regexp.MustCompile(`^(\d+\.\d+\.\d+)(?:-(alpha|beta|rc|dev)(?:\.?(\d+))?)?$`)
	pythonVersion  = map[string]string{"alpha": "a", "beta": "b", "rc": "rc", "dev": ".dev"}
)

// python returns the version as PyPI writes it: 1.2.3rc1 for 1.2.3-rc.1.
func (r *Release) python() (string, error) {
	m := pythonVersions.FindStringSubmatch(r.Version)
	if m == nil {
		return "", fmt.Errorf("the version %s is not like 1.2.3, 1.2.3-alpha.1, 1.2.3-beta.1, 1.2.3-rc.1 or 1.2.3-dev: %w",
			r.Version, errkind.Invalid)
	}
	if m[2] == "" {
		return m[1], nil
	}
	number := m[3]
	if number == "" {
		number = "0"
	}
	return m[1] + pythonVersion[m[2]] + number, nil
}

// A file is a file of an archive.
type file struct {
	name string // with slashes
	mode os.FileMode
	data []byte
}

// program returns the program of a platform as a file.
func (r *Release) program(p Platform, name string) (file, error) {
	data, err := os.ReadFile(r.Programs[p])
	return file{name, 0o755, data}, err
}

// tarball returns an archive of files in a folder of it.
func (r *Release) tarball(folder string, files []file) ([]byte, error) {
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	for _, f := range files {
		err := tw.WriteHeader(&tar.Header{Name: path.Join(folder, f.name), Mode: int64(f.mode), Size: int64(len(f.data)),
			ModTime: r.Date, Format: tar.FormatPAX})
		if err != nil {
			return nil, err
		}
		if _, err := tw.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := tw.Close(); err != nil {
		return nil, err
	}
	if err := zw.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// zipped returns an archive of files.
func (r *Release) zipped(files []file) ([]byte, error) {
	var b bytes.Buffer
	zw := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: r.Date}
		h.SetMode(f.mode)
		w, err := zw.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := zw.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// write writes a file to a folder, which it creates.
func write(dir string, f file) error {
	name := filepath.Join(dir, filepath.FromSlash(f.name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, f.data, f.mode)
}
