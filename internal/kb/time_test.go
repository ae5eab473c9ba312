package kb

import (
	"encoding/json"
	"strings"
	"testing"
)

// Times that are not RFC 3339 are passed on as they are.
func TestTime(t *testing.T) {
	for _, tt := range []struct{ in, want, day string }{
		{`"2026-01-02T03:04:05Z"`, `"2026-01-02T03:04:05Z"`, "2026-01-02"},
		{`"2026-01-02T03:04:05.5+02:00"`, `"2026-01-02T03:04:05.5+02:00"`, "2026-01-02"},
		{`"2025-11-20T10:00:00.123456"`, `"2025-11-20T10:00:00.123456"`, "2025-11-20"},
		{`"2025-11-20 10:00:00+00:00"`, `"2025-11-20 10:00:00+00:00"`, "2025-11-20"},
		{`"2025-11-20"`, `"2025-11-20"`, "2025-11-20"},
		{`"yesterday"`, `"yesterday"`, ""},
		{`""`, `""`, ""},
		{`1763632800`, `1763632800`, ""},
		{`1763632800.5`, `1763632800.5`, ""},
		{`null`, `null`, ""},
		{`true`, `true`, ""},
		{`{"$date":5}`, `null`, ""},
		{`[2025,11,20]`, `null`, ""},
		{`"now ` + "\u202e\U000e0041" + `"`, `"now \u202e\udb40\udc41"`, ""},
		{`"` + strings.Repeat("9", 200) + `"`, `null`, ""},
		{`"0000-99-99T10:00:00"`, `"0000-99-99T10:00:00"`, ""},
	} {
		var v struct {
			At Time `json:"at,omitzero"`
		}
		if err := json.Unmarshal([]byte(`{"at":`+tt.in+`}`), &v); err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		got, err := json.Marshal(v)
		if want := `{"at":` + tt.want + `}`; err != nil || string(got) != want || v.At.Day() != tt.day {
			t.Errorf("%s: written as %s (%v), day %q; want %s, %q", tt.in, got, err, v.At.Day(), want, tt.day)
		}
	}
	var none struct {
		At Time `json:"at,omitzero"`
	}
	if err := json.Unmarshal([]byte(`{}`), &none); err != nil || !none.At.IsZero() {
		t.Errorf("no time: %v, %v", none, err)
	}
}
