// Command apk installs a package of Alpine Linux in an empty folder and checks what
// is there. It has no Alpine: the database, the resolver and the installer are those
// of module go-apk, which builds images of Alpine. It uses no network.
//
//	apk FILE VERSION ROOT
package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha1" // the checksums of apk
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chainguard-dev/go-apk/pkg/apk"
	"github.com/chainguard-dev/go-apk/pkg/expandapk"
	apkfs "github.com/chainguard-dev/go-apk/pkg/fs"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("apk: ")
	slog.SetLogLoggerLevel(slog.LevelWarn)
	if len(os.Args) != 4 {
		log.Fatal("usage: apk FILE VERSION ROOT")
	}
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, file, version, root string) error {
	pkg, want, err := read(ctx, file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	repository, err := os.MkdirTemp("", "apk-repository")
	if err != nil {
		return err
	}
	defer os.RemoveAll(repository)
	if err := writeRepository(repository, file, pkg); err != nil {
		return err
	}
	db, err := install(ctx, repository, root, pkg)
	if err != nil {
		return err
	}
	return check(db, root, pkg.Name, version, want)
}

// An entry is what the package or the database of apk says about a file or folder.
type entry struct {
	dir      bool
	mode     int64
	uid, gid int
	sum      string // of a file: Q1 and its SHA-1 in base64
}

// read returns the control data and the entries of a package by path. It reports what
// the installer does not check.
func read(ctx context.Context, file string) (*apk.Package, map[string]entry, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	pkg, err := apk.ParsePackage(ctx, bytes.NewReader(data))
	if err != nil {
		return nil, nil, err
	}
	// apk refuses other versions.
	if _, err := apk.ParseVersion(pkg.Version); err != nil {
		return nil, nil, fmt.Errorf("version %q: %w", pkg.Version, err)
	}
	expanded, err := expandapk.ExpandApk(ctx, bytes.NewReader(data), "")
	if err != nil {
		return nil, nil, err
	}
	defer expanded.Close()
	if sum := hex.EncodeToString(expanded.PackageHash); sum != pkg.DataHash {
		return nil, nil, fmt.Errorf("the files have the checksum %s instead of %s", sum, pkg.DataHash)
	}
	control, err := fs.ReadDir(expanded.ControlFS, ".")
	if err != nil {
		return nil, nil, err
	}
	for _, c := range control {
		if c.Name() != ".PKGINFO" {
			return nil, nil, fmt.Errorf("the package has %s, which nothing here runs", c.Name())
		}
	}
	tarFile, err := expanded.PackageData()
	if err != nil {
		return nil, nil, err
	}
	defer tarFile.Close()
	entries, err := readEntries(tar.NewReader(tarFile))
	return pkg, entries, err
}

// readEntries returns the files and folders of a package. All must belong to root and
// be readable by everyone.
func readEntries(r *tar.Reader) (map[string]entry, error) {
	entries := map[string]entry{}
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		e := entry{dir: h.Typeflag == tar.TypeDir, mode: h.Mode & 0o7777, uid: h.Uid, gid: h.Gid}
		switch {
		case !e.dir && h.Typeflag != tar.TypeReg:
			return nil, fmt.Errorf("%s is neither a file nor a folder", h.Name)
		case e.uid != 0 || e.gid != 0 || h.Uname != "root" || h.Gname != "root":
			return nil, fmt.Errorf("%s belongs to %s:%s (%d:%d)", h.Name, h.Uname, h.Gname, e.uid, e.gid)
		case e.mode != 0o755 && (e.dir || e.mode != 0o644):
			return nil, fmt.Errorf("%s has the mode %o", h.Name, e.mode)
		}
		if !e.dir {
			content := sha1.New()
			if _, err := io.Copy(content, r); err != nil {
				return nil, err
			}
			if sum := h.PAXRecords["APK-TOOLS.checksum.SHA1"]; sum != hex.EncodeToString(content.Sum(nil)) {
				return nil, fmt.Errorf("%s has the checksum %x instead of %q", h.Name, content.Sum(nil), sum)
			}
			e.sum = "Q1" + base64.StdEncoding.EncodeToString(content.Sum(nil))
		}
		entries[path.Clean(h.Name)] = e
	}
}

// writeRepository makes a repository of the package in folder dir.
func writeRepository(dir, file string, pkg *apk.Package) error {
	dir = filepath.Join(dir, pkg.Arch)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	if err := os.Symlink(file, filepath.Join(dir, pkg.Filename())); err != nil {
		return err
	}
	archive, err := apk.ArchiveFromIndex(&apk.APKIndex{Packages: []*apk.Package{pkg}})
	if err != nil {
		return err
	}
	index, err := io.ReadAll(archive)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "APKINDEX.tar.gz"), index, 0o644)
}

// install installs the package and what it depends on from the repository, whose index
// has no signature. A dependency is an error, because the repository has nothing else.
func install(ctx context.Context, repository, root string, pkg *apk.Package) (*apk.APK, error) {
	db, err := apk.New(apk.WithFS(apkfs.DirFS(root)), apk.WithArch(pkg.Arch), apk.WithNoSignatureIndexes(repository))
	if err != nil {
		return nil, err
	}
	if err := db.InitDB(ctx); err != nil {
		return nil, err
	}
	if err := db.SetRepositories(ctx, []string{repository}); err != nil {
		return nil, err
	}
	if err := db.SetWorld(ctx, []string{pkg.Name}); err != nil {
		return nil, err
	}
	return db, db.FixateWorld(ctx, nil)
}

// check compares the database and the files with what the package has.
func check(db *apk.APK, root, name, version string, want map[string]entry) error {
	installed, err := db.GetInstalled()
	if err != nil {
		return err
	}
	if len(installed) != 1 || installed[0].Name != name || installed[0].Version != version {
		return fmt.Errorf("the database has %v instead of %s %s", installed, name, version)
	}
	text, err := os.ReadFile(filepath.Join(root, "lib/apk/db/installed"))
	if err != nil {
		return err
	}
	got, err := parseEntries(string(text))
	if err != nil {
		return fmt.Errorf("the database: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			return fmt.Errorf("%s: the database has %+v instead of %+v", name, got[name], want[name])
		}
		if err := checkFile(filepath.Join(root, name), want[name]); err != nil {
			return err
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("the database has %d files and folders instead of %d", len(got), len(want))
	}
	return nil
}

// parseEntries returns the files and folders that a database lists. GetInstalled does
// not return their modes and checksums.
func parseEntries(database string) (map[string]entry, error) {
	entries := map[string]entry{}
	var dir, name string
	for line := range strings.Lines(database) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		e := entries[name]
		switch key {
		case "F":
			dir, name = value, value
			e = entry{dir: true, mode: 0o755}
		case "R":
			name = path.Join(dir, value)
			e = entry{mode: 0o644}
		case "M", "a":
			fields := strings.Split(value, ":")
			if len(fields) != 3 {
				return nil, fmt.Errorf("%s has the rights %q", name, value)
			}
			var errs [3]error
			e.uid, errs[0] = strconv.Atoi(fields[0])
			e.gid, errs[1] = strconv.Atoi(fields[1])
			e.mode, errs[2] = strconv.ParseInt(fields[2], 8, 64)
			if err := errors.Join(errs[:]...); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		case "Z":
			e.sum = value
		default:
			continue
		}
		entries[name] = e
	}
	return entries, nil
}

// checkFile checks a file or folder. The installer does not set owners, so that all
// belong to the user who runs it.
func checkFile(file string, want entry) error {
	info, err := os.Lstat(file)
	if err != nil {
		return err
	}
	kind := fs.FileMode(0)
	if want.dir {
		kind = fs.ModeDir
	}
	if mode := kind | fs.FileMode(want.mode); info.Mode() != mode {
		return fmt.Errorf("%s has the mode %v instead of %v", file, info.Mode(), mode)
	}
	if want.dir {
		return nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	content := sha1.Sum(data)
	if sum := "Q1" + base64.StdEncoding.EncodeToString(content[:]); sum != want.sum {
		return fmt.Errorf("%s has the checksum %s instead of %s", file, sum, want.sum)
	}
	return nil
}
