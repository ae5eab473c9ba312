package errkind_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

func TestArgument(t *testing.T) {
	tests := []struct {
		err  *errkind.Argument
		want string
	}{
		{&errkind.Argument{Name: "query", Want: "a text"}, `argument "query": want a text`},
		{&errkind.Argument{Name: "pageSize", Value: 150, Want: "an integer from 1 to 100"},
			`argument "pageSize": got 150, want an integer from 1 to 100`},
		{&errkind.Argument{Name: "sort", Value: "a\nb", Want: "a known field"},
			`argument "sort": got "a\nb", want a known field`},
		{&errkind.Argument{Name: "query", Value: strings.Repeat("x", 1000), Want: "less"},
			`argument "query": got "` + strings.Repeat("x", 79) + `…, want less`},
	}
	for _, tt := range tests {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("Error() = %s, want %s", got, tt.want)
		}
		if !errors.Is(tt.err, errkind.Invalid) {
			t.Errorf("%v is not of kind Invalid", tt.err)
		}
	}
}

func TestRetryable(t *testing.T) {
	tests := []struct {
		err  error
		want bool
	}{
		{errkind.Invalid, false},
		{errkind.NotFound, false},
		{fmt.Errorf("queue: %w", errkind.Busy), true},
		{fmt.Errorf("x: %w", errkind.Timeout), true},
		{&errkind.Remote{Status: 502}, true},
		{&errkind.Remote{Kind: errkind.Invalid, Status: 400}, false},
		{&errkind.Remote{Kind: errkind.Invalid, Status: 429}, true},
		{&errkind.Remote{Kind: errkind.Unauthorized, Status: 401}, false},
		{&errkind.Remote{Status: 500}, false},
		{errors.New("other"), false},
	}
	for _, tt := range tests {
		if got := errkind.Retryable(tt.err); got != tt.want {
			t.Errorf("Retryable(%v) = %v, want %v", tt.err, got, tt.want)
		}
	}
}

func TestRemoteKind(t *testing.T) {
	err := fmt.Errorf("searching: %w", &errkind.Remote{Endpoint: "/api/v1/health", Status: 502,
		Message: "the server is down"})
	if !errors.Is(err, errkind.Unavailable) {
		t.Errorf("a Remote without a kind is not Unavailable")
	}
	if got, want := err.Error(), "searching: the server is down (/api/v1/health, status 502)"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	err = &errkind.Remote{Endpoint: "/", Status: 502, Unanswered: true, Message: "the server cannot be reached"}
	if got, want := err.Error(), "the server cannot be reached"; got != want {
		t.Errorf("Error() without an answer = %q, want %q", got, want)
	}
}

func TestMessage(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("the label is taken: %w", errkind.Conflict), "the label is taken"},
		{fmt.Errorf("reading: %w", errors.New("denied by someone")), "reading: denied by someone"},
		{errkind.NotFound, "not found"},
		{errors.Join(fmt.Errorf("no 7: %w", errkind.NotFound), fmt.Errorf("no 8: %w", errkind.NotFound)), "no 7\nno 8"},
		{fmt.Errorf("%w and %w", fmt.Errorf("no 7: %w", errkind.NotFound), errkind.NotFound),
			"no 7: not found and not found"},
	} {
		if got := errkind.Message(tt.err); got != tt.want {
			t.Errorf("Message(%v) = %q, want %q", tt.err, got, tt.want)
		}
	}
}
