package searchmcp

import (
	"context"

	"knowhow/internal/job"
	"knowhow/internal/mcpserver"
)

func (b *bridge) addService(s *mcpserver.Server) {
	mcpserver.AddTool(s, b.tool("list_labels", "List labels", b.choose(
		"List all labels configured in the underlying Fess server. Useful for diagnostics: searches are always limited to this domain.",
		"List the labels of the folders and files that are served.")), b.listLabels)
	mcpserver.AddTool(s, b.tool("health", "Check health", b.choose(
		"Check the health status of the underlying Fess server. Use it when searches fail. green and yellow mean that it works.",
		"Check whether the index of the documents can be used. Use it when searches fail: green means that it works, red that it is damaged.")), b.health)
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

func (b *bridge) listLabels(ctx context.Context, _ noArgs) (any, error) {
	return b.do(ctx, work{run: func(ctx context.Context, _ job.Report) (any, error) {
		found, err := b.backend.Labels(ctx)
		if err != nil {
			return nil, err
		}
		r := labelsResult{Labels: make([]label, 0, len(found))}
		for _, l := range found {
			r.Labels = append(r.Labels, label{Label: word(l.Name), Value: word(l.Value)})
		}
		return r, nil
	}})
}

type healthResult struct {
	Status   string `json:"status"`
	TimedOut bool   `json:"timed_out"`
}

func (b *bridge) health(ctx context.Context, _ noArgs) (any, error) {
	return b.do(ctx, work{run: func(ctx context.Context, _ job.Report) (any, error) {
		h, err := b.backend.Health(ctx)
		if err != nil {
			return nil, err
		}
		return healthResult{Status: h.Status, TimedOut: h.TimedOut}, nil
	}})
}
