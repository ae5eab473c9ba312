package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/mcpclient/redact"
	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// The revisions of MCP that the client supports. revisionModern has no
// handshake.
const (
	revisionLatest = "2025-11-25"
	revisionModern = "2026-07-28"
	revisionsKnown = "2025-11-25 2025-06-18 2025-03-26 2024-11-05"
)

// An introduction is the description of a server from its handshake.
type introduction struct {
	Protocol     string `json:"protocolVersion"`
	Instructions string `json:"instructions"`
	Capabilities struct {
		Tools json.RawMessage `json:"tools"`
		Tasks struct {
			Requests struct {
				Tools struct {
					Call json.RawMessage `json:"call"`
				} `json:"tools"`
			} `json:"requests"`
		} `json:"tasks"`
	} `json:"capabilities"`
}

// errNoHandshake reports that a server supports only revisions without a
// handshake.
var errNoHandshake = errors.New("the server has no handshake")

// A clientInfo describes the client to servers.
type clientInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// initialize performs the handshake. It declares no capabilities: with roots,
// which most clients declare, some servers ignore the end of their input.
func (s *session) initialize(ctx context.Context, client clientInfo, timeout time.Duration) (*introduction, error) {
	params, err := encode(struct {
		Protocol     string     `json:"protocolVersion"`
		Capabilities struct{}   `json:"capabilities"`
		Client       clientInfo `json:"clientInfo"`
	}{Protocol: revisionLatest, Client: client})
	if err != nil {
		return nil, err
	}
	result, _, err := s.call(ctx, "initialize", params, timeout)
	if remote, ok := errors.AsType[*RemoteError](err); ok {
		if remote.Code == codeNoMethod || remote.Code == codeRevision {
			return nil, errNoHandshake
		}
		return nil, refusedHandshake(remote)
	}
	if err != nil {
		return nil, err
	}
	var in introduction
	if err := json.Unmarshal(result, &in); err != nil {
		return nil, unreadable("initialize", err)
	}
	if !slices.Contains(strings.Fields(revisionsKnown), in.Protocol) {
		return nil, unknownRevision(in.Protocol)
	}
	s.link.agreed(ctx, in.Protocol)
	if err := s.notify(ctx, "notifications/initialized"); err != nil {
		return nil, err
	}
	return &in, nil
}

// discover connects without a handshake (MCP 2026-07-28).
func (s *session) discover(ctx context.Context, client clientInfo, timeout time.Duration) (*introduction, error) {
	s.link.agreed(ctx, revisionModern)
	s.meta = modernMeta(client)
	result, _, err := s.call(ctx, "server/discover", nil, timeout)
	if remote, ok := errors.AsType[*RemoteError](err); ok {
		return nil, refusedHandshake(remote)
	}
	if err != nil {
		return nil, err
	}
	var in struct {
		introduction
		Supported []string `json:"supportedVersions"`
	}
	if err := json.Unmarshal(result, &in); err != nil {
		return nil, unreadable("server/discover", err)
	}
	if !slices.Contains(in.Supported, revisionModern) {
		return nil, unknownRevision(strings.Join(in.Supported, ", "))
	}
	in.Protocol = revisionModern
	return &in.introduction, nil
}

// refusedHandshake hides the type of a server's error, which callers would
// otherwise take for the result of their call.
func refusedHandshake(remote *RemoteError) error {
	return &fault{err: fmt.Errorf("the handshake was refused: %s", remote.Error()), final: true}
}

func unreadable(method string, err error) error {
	what := fmt.Errorf("the server's answer to %s cannot be read: %s", method, redact.Escape(err.Error()))
	return &fault{err: what, final: true}
}

func unknownRevision(revision string) error {
	return &fault{err: fmt.Errorf("the server speaks revision %q of MCP; this client speaks %s to %s",
		sanitize.Short(revision, 80, 320), "2024-11-05", revisionModern), final: true}
}
