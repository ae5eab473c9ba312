package dataset

import (
	"context"
	"slices"
	"strings"
)

// A Check is the result of checking every rule of one dataset.
type Check struct {
	ID     string `json:"id"`     // or the name of the folder if the manifest has no valid one
	Folder string `json:"folder"` // absolute path
	State  State  `json:"state"`

	// Rules are in the order in which they were checked. Checking ends with the
	// rules that need what is missing.
	Rules []Finding `json:"rules"`
}

// Failed reports whether the dataset cannot be searched.
func (c Check) Failed() bool { return findings(c.Rules).failed() }

// Check returns the results of checking the dataset with an id, or all datasets
// if id is "", as of the last scan, and which model made the vectors. The error is an [*UnknownDataset] or that of
// ctx.
func (r *Registry) Check(ctx context.Context, id string) ([]Check, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	checks := []Check{}
	var ids []string
	for _, e := range r.snapshot() {
		ids = append(ids, e.id())
		if id == "" || id == e.id() {
			c := Check{ID: e.id(), Folder: r.path(e.folder), State: e.state, Rules: slices.Clone(e.found)}
			if e.state == Ready {
				v, err := e.set.verdict(ctx)
				if err != nil {
					return nil, err
				}
				c.Rules = append(c.Rules, v.finding)
			}
			checks = append(checks, c)
		}
	}
	if id != "" && len(checks) == 0 {
		return nil, unknown(id, ids)
	}
	slices.SortStableFunc(checks, func(a, b Check) int { return strings.Compare(a.ID, b.ID) })
	return checks, nil
}
