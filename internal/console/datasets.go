package console

// A Dataset is what is known of a dataset of a source.
type Dataset struct {
	ID          string   `json:"id"`
	Name        string   `json:"name,omitempty"`
	Description string   `json:"description,omitempty"`
	License     string   `json:"license,omitempty"`
	Version     string   `json:"version,omitempty"`
	State       string   `json:"state"`             // ready, loading or error
	Failure     string   `json:"failure,omitempty"` // why it cannot be searched, and what to do
	Warnings    []string `json:"warnings,omitempty"`

	// Of what is loaded.
	Documents  int    `json:"documents"` // texts
	Vectors    int    `json:"vectors"`
	Dimensions int    `json:"dimensions,omitempty"`
	Index      string `json:"index,omitempty"`  // its kind
	Metric     string `json:"metric,omitempty"` // by which the index compares vectors
	Model      string `json:"model,omitempty"`

	Bytes int64 `json:"bytes"` // of its files
}
