package search

import "context"

// callerKey is the key of a caller's token in a context.
type callerKey struct{}

// WithToken returns a context with the credential of the person for whom a call is
// made. A service that acts for its callers (a Fess server with roles) uses the
// token; all others ignore it.
func WithToken(ctx context.Context, token string) context.Context {
	return context.WithValue(ctx, callerKey{}, token)
}

// TokenFrom returns the token that WithToken added to ctx, "" if there is none. It
// is a secret, which must not appear in logs or errors.
func TokenFrom(ctx context.Context) string {
	token, _ := ctx.Value(callerKey{}).(string)
	return token
}
