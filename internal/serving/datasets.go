package serving

import (
	"cmp"
	"slices"

	"github.com/knowhow-mcp/knowhow/internal/console"
	"github.com/knowhow-mcp/knowhow/internal/dataset"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// shownDatasets is how many datasets of a source the console shows.
const shownDatasets = 200

// datasetsOf returns the datasets that a service searches, at most shownDatasets, and the
// number of the others. Those that cannot be searched come first.
func datasetsOf(service search.Service) (list []console.Dataset, more int) {
	s, ok := service.(interface{ Datasets() []dataset.Info })
	if !ok {
		return nil, 0
	}
	all := s.Datasets()
	rank := func(d dataset.Info) int {
		if d.State.Failed() {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b dataset.Info) int { return cmp.Compare(rank(a), rank(b)) })
	for _, d := range all[:min(len(all), shownDatasets)] {
		list = append(list, shownDataset(d))
	}
	return list, len(all) - len(list)
}

// shownDataset returns what the console shows of a dataset.
func shownDataset(d dataset.Info) console.Dataset {
	to := console.Dataset{ID: d.ID, Name: d.Name, Description: d.Description, License: d.License, Version: d.Version,
		State: string(dataset.Loading), Failure: d.Failure(), Documents: d.Documents, Vectors: d.Vectors,
		Dimensions: d.Dimensions, Index: d.Index, Metric: d.Metric, Model: d.Model, Bytes: d.Bytes}
	switch {
	case d.State == dataset.Ready:
		to.State = string(dataset.Ready)
	case d.State.Failed():
		to.State = string(dataset.Error)
	}
	for _, p := range d.Problems {
		if p.Status == dataset.Warning {
			to.Warnings = append(to.Warnings, p.String())
		}
	}
	return to
}
