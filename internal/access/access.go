// Package access defines who may do what on a server for several users: users and
// their rights, the access file that lists them, and the caller of a request.
package access

import (
	"context"
	"slices"
	"strings"
)

// All in a list of labels means all labels, those of the future included.
const All = "*"

// Rights are what a caller may do. The zero value permits nothing.
type Rights struct {
	Read  []string // labels of sources and collections, or [All]
	Write []string // collections, or [All]; does not imply Read
	Admin bool     // may see the metrics
}

// Plus returns the union of two rights.
func (r Rights) Plus(o Rights) Rights {
	return Rights{Read: union(r.Read, o.Read), Write: union(r.Write, o.Write), Admin: r.Admin || o.Admin}
}

// union returns the sorted elements of both lists, each once.
func union(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// Any reports whether r permits anything.
func (r Rights) Any() bool { return len(r.Read) > 0 || len(r.Write) > 0 || r.Admin }

// A Caller is the user who sent a request. The nil Caller may do everything: it is
// that of servers without users. A Caller must not be changed.
type Caller struct {
	// ID distinguishes users, also a user of the access file from one of an issuer
	// with the same name, and from one who had the name before or has got a new token.
	// It owns sessions and jobs. It is never "".
	ID string

	Name string // for people, logs and the audit

	// Groups are those of a user of an issuer, from whose rights those of the user
	// follow; sorted.
	Groups []string

	Rights

	// Version is that of the access file with these rights; see [File.Version]. Of two
	// callers with one Key, that with the greater version has the later rights.
	Version uint64
}

// Key distinguishes callers whose sessions are separate: users, and of one user of an
// issuer the tokens with different groups. It is "" for the nil Caller.
func (c *Caller) Key() string {
	if c == nil {
		return ""
	}
	return strings.Join(append([]string{c.ID}, c.Groups...), "\x00")
}

// Equal reports whether two callers are the same user with the same rights.
func (c *Caller) Equal(o *Caller) bool {
	return c.Key() == o.Key() && (c == nil || c.Admin == o.Admin && slices.Equal(c.Read, o.Read) &&
		slices.Equal(c.Write, o.Write))
}

// Covers reports whether c may do everything that o may do.
func (c *Caller) Covers(o *Caller) bool {
	if c == nil || o == nil {
		return c == nil
	}
	return (c.Admin || !o.Admin) && covers(c.Read, o.Read) && covers(c.Write, o.Write)
}

// covers reports whether labels contain others.
func covers(labels, others []string) bool {
	return !slices.ContainsFunc(others, func(l string) bool { return !has(labels, l) })
}

// MayRead reports whether the caller may read documents with a label.
func (c *Caller) MayRead(label string) bool { return c == nil || has(c.Read, label) }

// MayWrite reports whether the caller may change a collection, whose label is given.
func (c *Caller) MayWrite(label string) bool { return c == nil || has(c.Write, label) }

// Writes reports whether the caller may change any collection.
func (c *Caller) Writes() bool { return c == nil || len(c.Write) > 0 }

// Owner returns the ID of the caller, "" for the nil Caller.
func (c *Caller) Owner() string {
	if c == nil {
		return ""
	}
	return c.ID
}

func has(labels []string, label string) bool {
	return slices.Contains(labels, label) || slices.Contains(labels, All)
}

// callerKey is the context key of a Caller.
type callerKey struct{}

// With returns a context with the caller of a request.
func With(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// From returns the caller of a request, or nil if the server has no users.
func From(ctx context.Context) *Caller {
	c, _ := ctx.Value(callerKey{}).(*Caller)
	return c
}
