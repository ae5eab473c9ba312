package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/atomicfile"
	"github.com/knowhow-mcp/knowhow/internal/clients"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

const (
	// addedFile is the file in the default data folder with the entries for servers at
	// URLs that connect has added. Without it, they look like those of other servers while
	// their server does not run.
	addedFile = "connections.json"

	// maxAdded is how many entries are remembered: the latest ones.
	maxAdded = 200
)

// An addedEntry is an entry for a server at a URL that connect has added, in the file of
// any client.
type addedEntry struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// addedEntries are the contents of [addedFile].
type addedEntries struct {
	Connections []addedEntry `json:"connections"`
}

// addedPath returns the path of [addedFile].
func (v *invocation) addedPath() (string, error) {
	dir, err := defaultData(v.Env)
	return filepath.Join(dir, addedFile), err
}

// added returns the entries for servers at URLs that connect has added.
func (v *invocation) added() ([]addedEntry, error) {
	path, err := v.addedPath()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list addedEntries
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("%s is damaged and can be removed: %w", path, err)
	}
	return list.Connections, nil
}

// hasAdded reports whether connect has added an entry for a server at a URL. It does not
// if the file cannot be read.
func (v *invocation) hasAdded(s clients.Server) bool {
	if s.URL == "" {
		return false
	}
	list, err := v.added()
	return err == nil && slices.Contains(list, addedEntry{s.Name, s.URL})
}

// remember remembers an entry for a server at a URL. If that fails, it prints a warning:
// the client can be connected nevertheless.
func (v *invocation) remember(s clients.Server) {
	list, err := v.added()
	entry := addedEntry{s.Name, s.URL}
	if slices.Contains(list, entry) {
		return
	}
	if err == nil {
		err = v.writeAdded(append(list, entry))
	}
	if err != nil {
		v.warn(fmt.Sprintf("%s: the entry is recognized only while its server runs", errkind.Message(err)))
	}
}

// forget removes what [invocation.remember] has remembered, so that an entry that
// somebody else writes is not taken for it.
func (v *invocation) forget(s clients.Server) {
	if s.URL == "" {
		return
	}
	list, err := v.added()
	n := slices.Index(list, addedEntry{s.Name, s.URL})
	if err == nil && n >= 0 {
		err = v.writeAdded(slices.Delete(list, n, n+1))
	}
	if err != nil {
		v.warn(errkind.Message(err))
	}
}

// writeAdded writes the latest of some entries to [addedFile].
func (v *invocation) writeAdded(all []addedEntry) error {
	data, err := json.Marshal(addedEntries{all[max(0, len(all)-maxAdded):]})
	if err != nil {
		return err
	}
	path, err := v.addedPath()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	t, err := atomicfile.Prepare(path, append(data, '\n'), 0o600)
	if err != nil {
		return err
	}
	return t.Commit()
}
