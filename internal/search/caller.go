package search

import "context"

// callerKey is the context key of a caller's token.
type callerKey struct{}

// WithToken returns a context with the credential of the caller. A service that
// acts for its callers (a Fess server with roles) uses the token; other
// services ignore it.
func WithToken(ctx context.Context, token string) context.Context {
	return context.WithValue(ctx, callerKey{}, token)
}

// TokenFrom returns the token that WithToken added to ctx, or "" if there is
// none. The token is a secret and must not appear in logs or errors.
func TokenFrom(ctx context.Context) string {
	token, _ := ctx.Value(callerKey{}).(string)
	return token
}
