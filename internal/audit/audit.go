// Package audit records calls: who asked what of a server, which documents were
// returned, and how the call ended. A [Call] goes with the context of a request, and is
// written to a [Log] before the answer is sent.
package audit

import (
	"context"
	"sync"
	"time"
)

// A Call is a call of a server. What is returned to the caller is added while the call
// runs. The nil Call records nothing. The methods are safe for concurrent use; fields
// are set before the call runs and after it has ended.
type Call struct {
	Time    time.Time // of its beginning
	User    string    // "" if the caller is not known
	Client  string    // name of the program, as in clientInfo; "" if it is not known
	Session string    // "" if there is none
	Path    string    // of the HTTP request, without its query, which may contain a session
	Tool    string    // name of the tool, or the method of MCP or HTTP
	Status  int       // of HTTP, or the code of the JSON-RPC error
	Took    time.Duration

	mu     sync.Mutex
	query  string
	labels set
	docs   set
}

// SetQuery sets the text that is searched for.
func (c *Call) SetQuery(text string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.query = text
}

// AddLabels adds labels that the call is about.
func (c *Call) AddLabels(labels ...string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.labels.add(labels)
}

// AddDocuments adds the IDs of documents that the caller receives or changes.
func (c *Call) AddDocuments(ids ...string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.docs.add(ids)
}

// Add adds the query, the labels and the documents of another call, whose result the
// caller receives.
func (c *Call) Add(other *Call) {
	if c == nil || other == nil || c == other {
		return
	}
	other.mu.Lock()
	query, labels, docs := other.query, other.labels.list, other.docs.list
	other.mu.Unlock()
	if query != "" {
		c.SetQuery(query)
	}
	c.AddLabels(labels...)
	c.AddDocuments(docs...)
}

// Documents returns the number of documents that were added.
func (c *Call) Documents() int {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.docs.list)
}

// A set is a list of different texts.
type set struct {
	list []string
	seen map[string]bool
}

// add adds the texts that are new.
func (s *set) add(texts []string) {
	for _, text := range texts {
		if s.seen[text] {
			continue
		}
		if s.seen == nil {
			s.seen = map[string]bool{}
		}
		s.seen[text] = true
		s.list = append(s.list, text)
	}
}

// callKey is the context key of a Call.
type callKey struct{}

// With returns a context with the call that a server is answering.
func With(ctx context.Context, c *Call) context.Context { return context.WithValue(ctx, callKey{}, c) }

// From returns the call that a server is answering, or nil if calls are not recorded.
func From(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}
