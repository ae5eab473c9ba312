package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// dataPath returns the path of the data folder: the one that a flag or its variable
// names, that of serve, or the default folder of the platform.
func dataPath(e Env, named string) (string, error) {
	if named = cmp.Or(named, e.get("KNOWHOW_DATA")); named != "" {
		return filepath.Abs(e.expand(named))
	}
	return defaultData(e)
}

// defaultData returns the default data folder of the platform.
func defaultData(e Env) (string, error) {
	home := e.get("HOME")
	switch runtime.GOOS {
	case "windows":
		if dir := e.get("LOCALAPPDATA"); dir != "" {
			return filepath.Join(dir, "knowhow"), nil
		}
	case "darwin":
		if home != "" {
			return filepath.Join(home, "Library", "Application Support", "knowhow"), nil
		}
	default:
		if dir := e.get("XDG_DATA_HOME"); filepath.IsAbs(dir) {
			return filepath.Join(dir, "knowhow"), nil
		}
		if home != "" {
			return filepath.Join(home, ".local", "share", "knowhow"), nil
		}
	}
	return "", &hintError{fmt.Errorf("no data folder: the home directory is not known"),
		"Name a folder with --data or KNOWHOW_DATA."}
}

// dataFolder returns the data folder that flags name, with its model, which may be
// nil, and its store, but without its index. A search waits at least so long for the
// vector of its query.
func (v *invocation) dataFolder(named string, s *storeFlags, m *embedderFlags, wait time.Duration,
	log *slog.Logger) (*datafolder.Folder, error) {
	f := &datafolder.Folder{Explain: explainStore, Log: log}
	var err error
	if f.Dir, err = dataPath(v.Env, named); err != nil {
		return nil, err
	}
	if f.Model, err = m.open(); err != nil {
		return nil, err
	}
	f.Model.Wait = max(f.Model.Wait, wait)
	if f.Store, err = s.open(f.Model, log); err != nil {
		return nil, err
	}
	return f, nil
}

// hasIndex reports whether a data folder contains an index.
func hasIndex(dir string) (bool, error) {
	found, err := datafolder.HasIndex(dir)
	if err != nil {
		return false, &hintError{fmt.Errorf("the data folder cannot be read: %w", err),
			"Name another one with --data, or change its permissions."}
	}
	return found, nil
}

// indexError adds to an error of an index that was opened what to do if its folder
// cannot be used.
func indexError(err error) error {
	if _, ofPath := errors.AsType[*fs.PathError](err); ofPath || errors.Is(err, errkind.Denied) {
		return &hintError{err, "Name another data folder with --data."}
	}
	return err
}

// openExisting opens the index in the data folder dir, which is the named one or
// the default, for a command that changes nothing. The index is nil if there is none.
func (v *invocation) openExisting(ctx context.Context, named string, m datafolder.Model) (
	x *index.Index, dir string, err error) {
	if dir, err = dataPath(v.Env, named); err != nil {
		return nil, "", err
	}
	if usual, err := dataPath(v.Env, ""); err != nil || dir != usual {
		v.data = dir
	}
	if found, err := hasIndex(dir); err != nil || !found {
		return nil, dir, err
	}
	o := index.Options{Dir: dir, Log: v.warnings(), ReadOnly: true, Embedder: m.Queries, EmbedTime: m.Wait,
		ComputeTime: m.Compute}
	x, err = index.Open(ctx, o)
	return x, dir, indexError(err)
}

// existingFolder returns the data folder that flags name for a command that needs no
// server: its store, and its index if there is one.
func (v *invocation) existingFolder(ctx context.Context, named string, s *storeFlags) (*datafolder.Folder, error) {
	f := &datafolder.Folder{Explain: explainStore}
	var err error
	if f.Store, err = s.open(f.Model, v.warnings()); err != nil {
		return nil, err
	}
	f.Index, f.Dir, err = v.openExisting(ctx, named, f.Model)
	return f, err
}

// advised returns a command of this program that a message advises. It is for the
// data folder that was opened.
func (v *invocation) advised(command string, words ...string) string {
	line := v.Program + " " + command
	if v.data != "" {
		line += " --data " + commandWord(sanitize.Escape(v.data))
	}
	return strings.Join(append([]string{line}, words...), " ")
}

// fileExists reports whether a file exists at path.
func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// isFolder reports whether a folder exists at path.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
