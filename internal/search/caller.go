package search

import "context"

// callerKey is the key of a caller's token in a context.
type callerKey struct{}

// WithToken returns a context that carries the credential of the person on
// whose behalf a call is made. A service that was set up to act for its callers
// (a Fess server with roles) asks with that token; all others ignore it.
func WithToken(ctx context.Context, token string) context.Context {
	return context.WithValue(ctx, callerKey{}, token)
}

// TokenFrom returns the token that WithToken put into ctx, "" if there is none.
// It is a secret: it belongs into no log and no error.
func TokenFrom(ctx context.Context) string {
	token, _ := ctx.Value(callerKey{}).(string)
	return token
}
