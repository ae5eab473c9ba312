package kb

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/sanitize"
)

// A Time is a time of the engine API, in RFC 3339. Engines of others send other
// forms, too: a time without a zone, a number, null. Such a form is kept, and
// is written as it was received. The zero Time is one that the engine did not
// send.
type Time struct {
	time.Time        // zero if the form is not RFC 3339
	form      string // JSON of a form that is not RFC 3339; "" if there is none
}

// maxForm is the maximum length of the JSON of a time in bytes. A longer one,
// and a list or an object, is no time and becomes null.
const maxForm = 100

// IsZero reports whether there is neither a time nor another form.
func (t Time) IsZero() bool { return t.form == "" && t.Time.IsZero() }

// Equal reports whether two times are the same instant, or have the same other
// form.
func (t Time) Equal(u Time) bool { return t.form == u.form && t.Time.Equal(u.Time) }

// Day returns the day of a time, such as "2026-01-02", "" if it is not known.
func (t Time) Day() string {
	if !t.Time.IsZero() {
		return t.Format(time.DateOnly)
	}
	// Forms without a zone begin with the day.
	const quoted = `"` + time.DateOnly
	if len(t.form) > len(quoted) {
		if day, err := time.Parse(quoted, t.form[:len(quoted)]); err == nil {
			return day.Format(time.DateOnly)
		}
	}
	return ""
}

// MarshalJSON implements [json.Marshaler].
func (t Time) MarshalJSON() ([]byte, error) {
	if t.form != "" {
		return []byte(t.form), nil
	}
	return t.Time.MarshalJSON()
}

// UnmarshalJSON implements [json.Unmarshaler]. It accepts every value.
func (t *Time) UnmarshalJSON(data []byte) error {
	*t = Time{}
	data = bytes.TrimSpace(data)
	var s string
	if json.Unmarshal(data, &s) == nil && string(data) != "null" {
		if at, err := time.Parse(time.RFC3339Nano, s); err == nil {
			t.Time = at
			return nil
		}
	}
	t.form = "null"
	if shown := sanitize.ShowJSON(data); len(shown) <= maxForm && shown[0] != '{' && shown[0] != '[' {
		t.form = string(shown)
	}
	return nil
}
