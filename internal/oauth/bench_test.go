package oauth_test

import (
	"context"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

func BenchmarkVerify(b *testing.B) {
	for _, k := range []key{newKey("1"), {"2", jose.RS256, newRSA()}} {
		b.Run(string(k.alg), func(b *testing.B) {
			v, _ := (&issuer{keys: []jose.JSONWebKey{k.public()}}).verifier(b)
			token := k.token(b)
			for b.Loop() {
				if _, err := v.Verify(context.Background(), token, "/mcp/docs"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
