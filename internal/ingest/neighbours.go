package ingest

import (
	"context"
	"io"
	"path"
	"sync"

	"github.com/knowhow-mcp/knowhow/internal/extract"
)

// Bounds on what is read of the neighbours of a file.
const (
	maxNeighbours = 16
	neighbourHead = 4 << 10 // bytes
)

// neighbours determine the languages of the files in the folder of a file, which
// help to determine its charset. Their methods are safe for concurrent use.
type neighbours struct {
	files []entry

	mu      sync.Mutex
	folders map[string]*neighbourhood // by path, "." for the top one; nil before the first use
}

// A neighbourhood is a folder.
type neighbourhood struct {
	files []entry // at most maxNeighbours+1 that may be texts
	mu    sync.Mutex
	langs map[string]string // of files, by path; nil if they are not known yet
}

// lang returns the language that most neighbours of a file have, or "".
func (n *neighbours) lang(ctx context.Context, t tree, file string) string {
	f := n.folder(path.Dir(file))
	if f == nil {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.langs == nil {
		f.langs = map[string]string{}
		for _, e := range f.files {
			f.langs[e.path] = headLang(ctx, t, e)
		}
		if ctx.Err() != nil {
			f.langs = nil
			return ""
		}
	}
	counts := map[string]int{}
	for p, lang := range f.langs {
		if p != file && lang != "" {
			counts[lang]++
		}
	}
	best, most := "", 0
	for lang, n := range counts {
		if n > most {
			best, most = lang, n
		} else if n == most {
			best = "" // unless another one is more frequent
		}
	}
	return best
}

func (n *neighbours) folder(dir string) *neighbourhood {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.folders == nil {
		n.folders = map[string]*neighbourhood{}
		for _, e := range n.files {
			if !e.mode.IsRegular() || e.cloud || extract.IsDocument(e.path) || !extract.Supported(e.path, nil) {
				continue
			}
			dir := path.Dir(e.path)
			f := n.folders[dir]
			if f == nil {
				f = &neighbourhood{}
				n.folders[dir] = f
			}
			if len(f.files) <= maxNeighbours {
				f.files = append(f.files, e)
			}
		}
	}
	return n.folders[dir]
}

// headLang returns the language of the beginning of a file, or "".
func headLang(ctx context.Context, t tree, e entry) string {
	f, err := t.Open(e.open)
	if err != nil {
		return ""
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, neighbourHead))
	if err != nil {
		return ""
	}
	return extract.Language(ctx, e.path, head)
}
