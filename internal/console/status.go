package console

import (
	"encoding/json"
	"net/http"
	"time"
)

// A Status is the state of a server that the page shows to a caller.
type Status struct {
	Version   string     `json:"version"`
	User      User       `json:"user"`
	Tools     []string   `json:"tools"`     // groups, as in the option --tools
	MaxUpload int64      `json:"maxUpload"` // bytes of a file
	Endpoints []Endpoint `json:"endpoints"` // with search tools, the first one preselected
	Sources   []Source   `json:"sources"`
	Vectors   *Vectors   `json:"vectors,omitempty"` // nil if the documents are searched by words only
}

// A User is the caller of the page.
type User struct {
	Name  string `json:"name"` // "" on a server without users
	Admin bool   `json:"admin"`
	Write Labels `json:"write"` // collections to which the caller may write
}

// Labels are all labels or some. In JSON they are true, false for none, or a list. The
// list is empty if the caller may not know the labels.
type Labels struct {
	All  bool
	Some []string // nil for none
}

// MarshalJSON implements [json.Marshaler].
func (l Labels) MarshalJSON() ([]byte, error) {
	if l.All || l.Some == nil {
		return json.Marshal(l.All)
	}
	return json.Marshal(l.Some)
}

// Vectors is how many passages of all sources can be found by meaning.
type Vectors struct {
	Done    int   `json:"done"`
	Total   int   `json:"total"`
	Seconds int64 `json:"secondsLeft,omitempty"` // an estimate; 0 if it is not known
}

// An Endpoint is an MCP endpoint with the tools DOMAIN_search,
// DOMAIN_read_content and DOMAIN_get_document.
type Endpoint struct {
	Path   string `json:"path"` // such as "/mcp/docs"
	Domain string `json:"domain"`
	Label  string `json:"label,omitempty"` // of the only source; "" for all sources
}

// The kinds of sources that are indexed. The others are asked at each search: fess,
// datasets and kb. What is counted of those is zero.
const (
	Folder     = "folder" // or a file
	Repository = "repository"
	Site       = "site"
)

// A Source is what is known of a source.
type Source struct {
	Label       string         `json:"label"`
	Path        string         `json:"path"`
	Description string         `json:"description,omitempty"`
	Kind        string         `json:"kind"`
	Documents   int            `json:"documents"`
	TextBytes   int64          `json:"textBytes"`
	Indexed     *time.Time     `json:"indexed,omitempty"`    // when it was last read completely; nil if that is not known
	Watched     bool           `json:"watched"`              // by any process
	Indexing    *Progress      `json:"indexing,omitempty"`   // of documents; nil if none remain to be indexed
	Incomplete  string         `json:"incomplete,omitempty"` // what is missing, and why indexing has stopped, as a sentence
	Errors      int            `json:"errors"`               // files that should be indexed and cannot be; at most 5,000
	LeftOut     map[string]int `json:"leftOut"`              // number of files and folders by reason
	InPart      map[string]int `json:"inPart,omitempty"`     // number of files that are indexed except for a part

	Datasets     []Dataset `json:"datasets,omitempty"`     // of a source of that kind
	MoreDatasets int       `json:"moreDatasets,omitempty"` // that are not in Datasets
}

// A Progress is how much of a number is done.
type Progress struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// A Path is a file or a folder that is left out.
type Path struct {
	Path    string `json:"path"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// serveStatus sends the status as JSON.
func (c *console) serveStatus(w http.ResponseWriter, r *http.Request) {
	status, err := c.o.Status(r.Context())
	c.send(w, r, status, err)
}
