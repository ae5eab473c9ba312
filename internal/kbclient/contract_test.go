package kbclient_test

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kb/kbtest"
	"github.com/knowhow-mcp/knowhow/internal/kbclient"
	"github.com/knowhow-mcp/knowhow/internal/kbserver"
)

// TestContract runs the contract suite over HTTP.
func TestContract(t *testing.T) {
	kbtest.Run(t, func(t *testing.T) kb.Base { return remote(t, nil) })
	kbtest.RunMeaning(t, func(t *testing.T, e embed.Embedder) kb.Base { return remote(t, e) })
}

// remote starts an engine, which computes vectors with e unless that is nil, and
// returns a client of it.
func remote(t *testing.T, e embed.Embedder) kb.Base {
	dir := t.TempDir()
	x, err := index.Open(t.Context(), index.Options{Dir: dir, Embedder: e, EmbedTime: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	base := kb.NewLocal(kb.Options{Index: x, Dir: dir, MaxUpload: kbtest.MaxUpload, Version: "test"})
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	t.Cleanup(work.Wait)
	t.Cleanup(cancel)
	work.Go(func() { base.Run(ctx) })
	if e != nil {
		work.Go(func() {
			for ctx.Err() == nil {
				if _, err := x.EmbedNext(ctx, e, nil, 10); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				select {
				case <-ctx.Done():
				case <-time.After(5 * time.Millisecond):
				}
			}
		})
	}
	web := httptest.NewServer(httpguard.New(httpguard.Options{Token: "key", Routes: []httpguard.Route{
		kbserver.Route(kbserver.Options{Base: base, Prefix: "/kb", TempDir: kb.Incoming(dir),
			MaxUpload: kbtest.MaxUpload})}}))
	t.Cleanup(web.Close)
	c, err := kbclient.New(kbclient.Options{BaseURL: web.URL + "/kb", Key: "key"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
