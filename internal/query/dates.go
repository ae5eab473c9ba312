package query

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// DateSpan parses a date of the query language: OpenSearch's date math
// ("now/d-1d", "2025-03||+1M/d"), a year, month, day, hour, minute or second
// ("2025-03-01T12"), RFC 3339, or milliseconds since 1970. It returns the first
// moment of the date and the first moment after it. Dates without a zone are
// UTC. A malformed date gives an error of kind Invalid.
func DateSpan(s string, now time.Time) (from, beyond time.Time, err error) {
	bad := fmt.Errorf("%.42q is not a date: want for example 2025-03-01, 2025-03-01T12:00:00Z, now or now/d-7d: %w", s,
		errkind.Invalid)
	base, math, found := strings.Cut(s, "||")
	if rest, ok := strings.CutPrefix(s, "now"); ok {
		math, found = rest, true
		from = now.UTC().Truncate(time.Millisecond)
		beyond = from.Add(time.Millisecond)
	} else if from, beyond, ok = dateOnly(base); !ok {
		return from, beyond, bad
	}
	if !found {
		return from, beyond, nil
	}
	if from, beyond, ok := dateMath(from, beyond, math); ok {
		return from, beyond, nil
	}
	return from, beyond, bad
}

// dateForms are the layouts of dates and how long a date of each lasts.
var dateForms = [...]struct {
	layout              string
	years, months, days int
	rest                time.Duration
}{
	{"2006", 1, 0, 0, 0},
	{"2006-01", 0, 1, 0, 0},
	{"2006-01-02", 0, 0, 1, 0},
	{"2006-01-02T15", 0, 0, 0, time.Hour},
	{"2006-01-02T15:04", 0, 0, 0, time.Minute},
	{"2006-01-02T15:04:05", 0, 0, 0, time.Second},
	{"2006-01-02T15:04:05.999", 0, 0, 0, time.Millisecond},
	{"2006-01-02T15:04Z07:00", 0, 0, 0, time.Minute},
	{"2006-01-02T15:04:05Z07:00", 0, 0, 0, time.Second},
	{"2006-01-02T15:04:05.999Z07:00", 0, 0, 0, time.Millisecond},
}

// dateOnly parses a date without date math.
func dateOnly(s string) (from, beyond time.Time, ok bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && len(s) > 4 && len(s) < 16 {
		from = time.UnixMilli(n).UTC()
		return from, from.Add(time.Millisecond), true
	}
	// time.Parse accepts a fraction after any second.
	fraction := strings.Contains(s, ".")
	for _, f := range dateForms {
		if fraction != strings.Contains(f.layout, ".") {
			continue
		}
		t, err := time.Parse(f.layout, s)
		if err == nil {
			t = t.UTC()
			return t, t.AddDate(f.years, f.months, f.days).Add(f.rest), true
		}
	}
	return from, beyond, false
}

// dateMath applies steps such as "+1M", "-2d" and "/d" to a span.
func dateMath(from, beyond time.Time, math string) (_, _ time.Time, ok bool) {
	const maxStep = 100_000 // keeps years within what time and the services can hold
	for math != "" {
		op := math[0]
		i := 1
		for i < len(math) && '0' <= math[i] && math[i] <= '9' {
			i++
		}
		n := 1
		if i > 1 {
			var err error
			if n, err = strconv.Atoi(math[1:i]); err != nil || n > maxStep {
				return from, beyond, false
			}
		}
		if i == len(math) || op == '/' && i > 1 {
			return from, beyond, false
		}
		unit := math[i]
		math = math[i+1:]
		switch op {
		case '+', '-':
			if op == '-' {
				n = -n
			}
			from, ok = shift(from, n, unit)
			beyond, _ = shift(beyond, n, unit)
		case '/':
			from, ok = floor(from, unit)
			beyond, _ = shift(from, 1, unit)
		default:
			ok = false
		}
		if !ok {
			return from, beyond, false
		}
	}
	return from, beyond, true
}

// shift adds n units to a time.
func shift(t time.Time, n int, unit byte) (time.Time, bool) {
	switch unit {
	case 'y':
		return t.AddDate(n, 0, 0), true
	case 'M':
		return t.AddDate(0, n, 0), true
	case 'w':
		return t.AddDate(0, 0, 7*n), true
	case 'd':
		return t.AddDate(0, 0, n), true
	case 'h', 'H':
		return t.Add(time.Duration(n) * time.Hour), true
	case 'm':
		return t.Add(time.Duration(n) * time.Minute), true
	case 's':
		return t.Add(time.Duration(n) * time.Second), true
	}
	return t, false
}

// floor returns the beginning of the unit that contains t. Weeks begin on
// Monday.
func floor(t time.Time, unit byte) (time.Time, bool) {
	y, m, d := t.Date()
	switch unit {
	case 'y':
		return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC), true
	case 'M':
		return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC), true
	case 'w':
		return time.Date(y, m, d-(int(t.Weekday())+6)%7, 0, 0, 0, 0, time.UTC), true
	case 'd':
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC), true
	case 'h', 'H':
		return t.Truncate(time.Hour), true
	case 'm':
		return t.Truncate(time.Minute), true
	case 's':
		return t.Truncate(time.Second), true
	}
	return t, false
}

// SizeBound reads an end of a range of content_length, a number of bytes, for
// [Between]. The error is of kind errkind.Invalid.
func SizeBound(s string) (from int64, beyond *int64, err error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, nil, fmt.Errorf("content_length needs a whole number of bytes, got %.40q: %w", s, errkind.Invalid)
	}
	return n, nil, nil
}
