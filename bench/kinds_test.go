package bench

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// kinds are the sources that the pages of a corpus are split over.
var kinds = [...]string{"folder", "fess", "datasets", "kb"}

// severalKinds starts a program with the pages of the corpus in a folder, behind the
// Fess API of another process, in a dataset and in the knowledge base. It returns a
// function that searches all of them at once, by words.
func (c corpus) severalKinds(b *testing.B) func(question) answerReply {
	b.Helper()
	dir := b.TempDir()
	pages := map[string]string{} // in the knowledge base: texts by name
	err := filepath.WalkDir(c.source, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(c.source, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sum := fnv.New64a()
		sum.Write([]byte(name))
		kind := kinds[binary.BigEndian.Uint64(sum.Sum(nil))%uint64(len(kinds))]
		if kind == "kb" {
			pages[strings.ReplaceAll(name, string(filepath.Separator), "__")] = string(text)
			return nil
		}
		return writeSettled(filepath.Join(dir, kind, filepath.Dir(name)), e.Name(), string(text))
	})
	if err != nil {
		b.Fatal(err)
	}
	data, folder, datasets := filepath.Join(dir, "data"), filepath.Join(dir, "folder"), filepath.Join(dir, "sets")

	create := exec.CommandContext(b.Context(), c.binary(b), "datasets", "create", "--datasets", datasets, "--embedder", "none",
		"pages", filepath.Join(dir, "datasets"))
	if out, err := create.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}

	server := startProgram(b, c.binary(b), "serve", "--no-watch", "--addr", "127.0.0.1:0", "--data", filepath.Join(dir, "far"),
		"--label", "far", filepath.Join(dir, "fess"))
	b.Cleanup(func() { _ = server.cmd.Process.Signal(syscall.SIGTERM) })
	url := strings.TrimSuffix(server.await(`^listening on (http://.*)`)[1], "/mcp")
	server.await(`^far: \d+ documents? indexed`)
	config := filepath.Join(dir, "fess.json")
	err = os.WriteFile(config, fmt.Appendf(nil, `{"fessBaseUrl": "%s/fess",
		"domain": {"id": "fess", "name": "Fess", "description": "pages", "labelFilter": "far"}}`, url), 0o600)
	if err != nil {
		b.Fatal(err)
	}

	e := startEngine(b, data, "none")
	for name, text := range pages {
		if err := e.addFile(name, text); err != nil {
			b.Fatal(err)
		}
	}
	for { // files without text fail
		var s engineStatus
		if err := e.send("GET", "/api/v1/status", jsonMedia, nil, &s); err != nil {
			b.Fatal(err)
		}
		if indexed(s) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}

	p := startProgram(b, c.binary(b), "mcp", "--no-watch", "--source-timeout", "20s", "--data", data,
		folder, "fess:"+config, "datasets:"+datasets, "kb")
	p.initialize()
	p.await(`^folder: \d+ documents? indexed`)
	return p.answers(b)
}
