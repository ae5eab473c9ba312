package kbmcp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kbmcp"
)

// oneDocument is a base with one document, 1. Each call takes a second.
type oneDocument struct {
	kb.Base
	refused string // tag that cannot be added or removed

	mu   sync.Mutex
	tags []string
	text string
}

func (b *oneDocument) Document(context.Context, int64, int, int) (*kb.Document, error) {
	time.Sleep(time.Second)
	b.mu.Lock()
	defer b.mu.Unlock()
	return &kb.Document{ID: 1, Tags: slices.Clone(b.tags)}, nil
}

func (b *oneDocument) UpdateNote(ctx context.Context, id int64, c kb.NoteChange) (*kb.Document, error) {
	b.mu.Lock()
	b.text = *c.Text
	b.mu.Unlock()
	return b.Document(ctx, id, 0, kb.AllChunks)
}

func (b *oneDocument) change(tag string, f func()) ([]string, error) {
	time.Sleep(time.Second)
	b.mu.Lock()
	defer b.mu.Unlock()
	if tag == b.refused {
		return nil, errors.Join(fmt.Errorf("no %s", tag), errkind.Conflict)
	}
	f()
	slices.Sort(b.tags)
	b.tags = slices.Compact(b.tags)
	return slices.Clone(b.tags), nil
}

func (b *oneDocument) AddTags(_ context.Context, _ int64, tags []string) ([]string, error) {
	return b.change(tags[0], func() { b.tags = append(b.tags, tags...) })
}

func (b *oneDocument) RemoveTag(_ context.Context, _ int64, tag string) ([]string, error) {
	return b.change(tag, func() {
		b.tags = slices.DeleteFunc(b.tags, func(s string) bool { return s == tag })
	})
}

// TestPartialUpdate checks that a refused change of the collection changes nothing,
// and that errors name what was changed.
func TestPartialUpdate(t *testing.T) {
	for _, tt := range []struct {
		name, refused string
		args          args
		want          string // part of the error
		tags          []string
	}{
		{"the collection", "collection:old", args{"collection": "new", "tags": []string{"x"}}, "no collection:old",
			[]string{"a", "b", "collection:old"}},
		{"the new collection", "collection:new", args{"collection": "new", "tags": []string{"x"}},
			"stays in the collection old: no collection:new", []string{"a", "b", "collection:old"}},
		{"the collection, with a text", "collection:old", args{"text": "t", "collection": "new", "tags": []string{"x"}},
			"the call has changed only the text: no collection:old", []string{"a", "b", "collection:old"}},
		{"the tags", "x", args{"collection": "new", "tags": []string{"x"}},
			"the call has changed only the collection: no x", []string{"a", "b", "collection:new"}},
		{"one of the tags", "b", args{"text": "t", "collection": "new", "tags": []string{"x"}},
			"the call has changed only the text, the collection and some of the tags: no b",
			[]string{"b", "collection:new", "x"}},
		{"the first tag", "x", args{"tags": []string{"x"}}, "no x", []string{"a", "b", "collection:old"}},
		{"the last tag", "b", args{"tags": []string{}}, "the call has changed only some of the tags: no b",
			[]string{"b", "collection:old"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &oneDocument{refused: tt.refused, tags: []string{"a", "b", "collection:old"}}
				tt.args["document_id"] = 1
				_, e := connect(t, "2025-11-25", kbmcp.Options{Base: b}).Tool("kb_update_note", tt.args)
				const changed = "has changed"
				if e == nil || !strings.Contains(e.Message, tt.want) ||
					strings.Contains(e.Message, changed) != strings.Contains(tt.want, changed) {
					t.Errorf("error = %v, want %q", e, tt.want)
				}
				if diff := cmp.Diff(tt.tags, b.tags); diff != "" {
					t.Errorf("tags (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Calls that change the same document follow each other, also those of different
// servers.
func TestUpdatesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &oneDocument{tags: []string{"a", "collection:old"}}
		o := kbmcp.Options{Base: b, Updates: &kbmcp.Updates{}}
		var all sync.WaitGroup
		for _, name := range []string{"x", "y", "z"} {
			c := connect(t, "2025-11-25", o)
			all.Go(func() {
				if _, e := c.Tool("kb_update_note", args{"document_id": 1, "tags": []string{name},
					"collection": name}); e != nil {
					t.Errorf("%s: %v", name, e)
				}
			})
		}
		all.Wait()
		if len(b.tags) != 2 || "collection:"+b.tags[1] != b.tags[0] && "collection:"+b.tags[0] != b.tags[1] {
			t.Errorf("tags = %q, want those of one call", b.tags)
		}
	})
}
