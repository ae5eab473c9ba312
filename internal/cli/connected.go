package cli

import (
	"encoding/json"
	"fmt"
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

// added returns the entries for servers at URLs that connect has added, none if the file
// cannot be read.
func (v *invocation) added() []addedEntry {
	path, err := v.addedPath()
	if err != nil {
		return nil
	}
	data, err := os.ReadFile(path)
	var list addedEntries
	if err != nil || json.Unmarshal(data, &list) != nil {
		return nil
	}
	return list.Connections
}

// hasAdded reports whether connect has added an entry for a server at a URL.
func (v *invocation) hasAdded(s clients.Server) bool {
	return s.URL != "" && slices.Contains(v.added(), addedEntry{s.Name, s.URL})
}

// remember remembers an entry for a server at a URL. If that fails, it prints a warning:
// the client can be connected nevertheless.
func (v *invocation) remember(s clients.Server) {
	if v.hasAdded(s) {
		return
	}
	if err := v.writeAdded(append(v.added(), addedEntry{s.Name, s.URL})); err != nil {
		v.warn(fmt.Sprintf("%s: the entry is recognized only while its server runs", errkind.Message(err)))
	}
}

// forget removes what [invocation.remember] has remembered, so that an entry that
// somebody else writes is not taken for it.
func (v *invocation) forget(s clients.Server) {
	if !v.hasAdded(s) {
		return
	}
	is := func(a addedEntry) bool { return a == addedEntry{s.Name, s.URL} }
	if err := v.writeAdded(slices.DeleteFunc(v.added(), is)); err != nil {
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
