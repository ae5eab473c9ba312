package searchmcp

import (
	"context"

	"knowhow/internal/mcpserver"
)

func (t *Tools) addService(s *mcpserver.Server) {
	mcpserver.AddTool(s, t.tool("list_labels", "List labels", t.choose(
		"List all labels configured in the underlying Fess server. Useful for diagnostics: searches are always limited to this domain.",
		"List the labels of the folders and files that are served.")), t.listLabels)
	mcpserver.AddTool(s, t.tool("health", "Check health", t.choose(
		"Check the health status of the underlying Fess server. Use it when searches fail. green and yellow mean that it works.",
		"Check whether the index of the documents can be used. Use it when searches fail: green means that it works, red that it is damaged.")), t.health)
}

// noArgs are the arguments of tools that have none.
type noArgs struct{}

type labelsResult struct {
	Labels []label `json:"labels"`
}

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
		r := labelsResult{Labels: make([]label, 0, len(found))}
		for _, l := range found {
			r.Labels = append(r.Labels, label{Label: word(l.Name), Value: word(l.Value)})
		}
		return r, nil
	})
}

type healthResult struct {
	Status   string `json:"status"`
	TimedOut bool   `json:"timed_out"`
}

func (t *Tools) health(ctx context.Context, _ noArgs) (any, error) {
	return t.call(ctx, func(ctx context.Context) (any, error) {
		h, err := t.backend.Health(ctx)
		if err != nil {
			return nil, err
		}
		return healthResult{Status: h.Status, TimedOut: h.TimedOut}, nil
	})
}
