package search

import "context"

// A CopyReader reads the copies of original documents that the service stored
// when it indexed them. It is an optional ability.
type CopyReader interface {
	// StoredCopy returns the copy of a document. It looks the document up as
	// Finder does. A document of which the service stored no copy gives an
	// error of kind Unsupported.
	StoredCopy(ctx context.Context, id string, labels []string) (*StoredCopy, error)
}

// A StoredCopy is an original as the service stored it.
type StoredCopy struct {
	DocID     string
	URL       string // of the original, as in Hit
	MediaType string // of Data, with its charset where it is text: "text/html; charset=utf-8"
	Data      []byte // never empty
}
