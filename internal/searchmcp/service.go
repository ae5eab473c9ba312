package searchmcp

import (
	"context"

	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
)

func (t *Tools) addService(s *mcpserver.Server) {
	mcpserver.AddTool(s, t.tool("list_labels", "List labels", t.choose(
		"List all labels configured in the underlying Fess server. Useful for diagnostics: searches are always "+
			"limited to this domain.",
		"List the labels of the folders and files that are served.")), t.listLabels)
	mcpserver.AddTool(s, t.tool("health", "Check health", t.choose(
		"Check the health status of the underlying Fess server. Use it when searches fail. green and yellow mean "+
			"that it works.",
		"Check whether the index of the documents can be used. Use it when searches fail: green means that it works, "+
			"red that it is damaged.")), t.health)
}

// noArgs are the arguments of tools that have none.
type noArgs struct{}

type label struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

func (t *Tools) listLabels(ctx context.Context, _ noArgs) (any, error) {
	return t.call(ctx, func(ctx context.Context) (any, error) {
		found, err := t.backend.Labels(ctx)
		if err != nil {
			return nil, err
		}
		labels := make([]label, len(found))
		for i, l := range found {
			labels[i] = label{word(l.Name), word(l.Value)}
		}
		return map[string][]label{"labels": labels}, nil
	})
}

func (t *Tools) health(ctx context.Context, _ noArgs) (any, error) {
	return t.call(ctx, func(ctx context.Context) (any, error) {
		h, err := t.backend.Health(ctx)
		if err != nil {
			return nil, err
		}
		return map[string]any{"status": h.Status, "timed_out": h.TimedOut}, nil
	})
}
