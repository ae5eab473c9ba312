package office

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A numberFormat is a format of numbers in a sheet (ECMA-376, part 1, 18.8.31): its
// sections for positive, negative and zero. An empty one is the format General.
//
// Dates, times, percentages, thousands separators, decimals and the texts around
// them are as displayed. Names of months and days are in English, and formats whose
// display depends on the settings of the reader's computer show dates as in
// 2025-04-30. Other formats show numbers as General does.
type numberFormat []formatSection

// A formatSection is a format for some numbers.
type formatSection struct {
	parts []formatPart
	date  bool
	other bool // a format that is not supported

	number           string // the places of the digits, such as "#,##0.00", or "general"; "" if there are none
	before, after    string // what stands around the number
	percent          bool
	thousands        bool
	digits, decimals int // at least before, and at most after the point
	least            int // decimals at least
}

// A formatPart is a literal text or a part of a date, such as "mm".
type formatPart struct {
	text string
	date bool
}

// builtinFormats are the formats that workbooks do not contain (18.8.30).
var builtinFormats = map[string]string{
	"1": "0", "2": "0.00", "3": "#,##0", "4": "#,##0.00", "5": "#,##0", "6": "#,##0", "7": "#,##0.00", "8": "#,##0.00",
	"9": "0%", "10": "0.00%", "14": isoDate, "15": "d-mmm-yy", "16": "d-mmm", "17": "mmm-yy", "18": "h:mm AM/PM",
	"19": "h:mm:ss AM/PM", "20": "h:mm", "21": "h:mm:ss", "22": isoDate + " h:mm", "27": isoDate, "28": isoDate,
	"29": isoDate, "30": isoDate, "31": isoDate, "32": "h:mm", "33": "h:mm:ss", "36": isoDate, "37": "#,##0;(#,##0)",
	"38": "#,##0;(#,##0)", "39": "#,##0.00;(#,##0.00)", "40": "#,##0.00;(#,##0.00)", "41": "#,##0", "42": "#,##0",
	"43": "#,##0.00", "44": "#,##0.00", "45": "mm:ss", "46": "[h]:mm:ss", "47": "mm:ss", "50": isoDate, "57": isoDate,
	"58": "mmm-dd",
}

const isoDate = "yyyy-mm-dd"

var (
	// formatToken matches a quoted text, a character after a sign that quotes it or
	// replaces it by white space, brackets, a part of a date, places of digits, or
	// another character.
	formatToken = regexp.MustCompile(
		`(?is)^(?:"[^"]*"?|[\\_*].?|\[[^\]]*\]?|general|am/pm|a/p|y+|m+|d+|h+|s+|e[+-]|[0#?.,]+|.)`)

	// elapsed matches the unit of an elapsed time.
	elapsed = regexp.MustCompile(`(?i)^\[(?:h+|m+|s+)\]$`)

	// subseconds matches the decimals of seconds, which are not shown.
	subseconds = regexp.MustCompile(`(?i)(s\]?)[.,]0+`)
)

// parseNumberFormat returns an empty format for one that shows numbers as General
// does.
func parseNumberFormat(code string) (f numberFormat) {
	switch {
	case code == "" || len(code) > 500 || strings.EqualFold(code, "general"):
		return nil
	case strings.Contains(code, "[$-F800]"), strings.Contains(code, "[$-x-sysdate]"):
		code = isoDate
	case strings.Contains(code, "[$-F400]"), strings.Contains(code, "[$-x-systime]"):
		code = "hh:mm:ss"
	}
	code = subseconds.ReplaceAllString(code, "$1")
	f = append(f, formatSection{})
	for code != "" {
		token := formatToken.FindString(code)
		if code = code[max(len(token), 1):]; token == ";" {
			if len(f) == 3 {
				break // the section of texts
			}
			f = append(f, formatSection{})
			continue
		}
		f[len(f)-1].add(token)
	}
	for i := range f {
		f[i].finish()
	}
	return f
}

// add adds a token of the format.
func (s *formatSection) add(token string) {
	lower := strings.ToLower(token)
	switch {
	case token == "":
	case token[0] == '"':
		s.literal(strings.Trim(token, `"`))
	case token[0] == '\\':
		s.literal(token[1:])
	case token[0] == '_':
		s.literal(" ")
	case token[0] == '*':
	case strings.HasPrefix(token, "[$"): // a currency
		sign, _, _ := strings.Cut(strings.TrimSuffix(token[2:], "]"), "-")
		s.literal(sign)
	case elapsed.MatchString(token):
		s.datePart(lower[:2])
	case token[0] == '[': // a colour, or a condition
		s.other = s.other || strings.ContainsAny(token, "<>=")
	case lower == "am/pm", lower == "a/p":
		s.datePart("am/pm")
	case strings.Contains("ymdhs", lower[:1]):
		s.datePart(lower)
	case lower == "general", strings.Contains("0#?.,", token[:1]):
		s.other = s.other || s.number != "" || strings.HasSuffix(token, ",") // a fraction, a pattern, or thousands
		s.number = lower
		s.parts = append(s.parts, formatPart{text: token})
	case len(token) == 2 && lower[0] == 'e', token == "@":
		s.other = true
	default:
		s.percent = s.percent || token == "%"
		s.literal(token)
	}
}

func (s *formatSection) literal(text string) {
	s.parts = append(s.parts, formatPart{text: text})
	if s.number == "" {
		s.before += text
	} else {
		s.after += text
	}
}

func (s *formatSection) datePart(text string) {
	s.date = true
	s.parts = append(s.parts, formatPart{text, true})
}

// finish examines the section after the last token.
func (s *formatSection) finish() {
	whole, fraction, _ := strings.Cut(s.number, ".")
	s.thousands, s.digits = strings.Contains(whole, ","), strings.Count(whole, "0")
	s.decimals, s.least = len(fraction), strings.LastIndexByte(fraction, '0')+1
	var dates []*formatPart
	half := false // hours from 1 to 12
	for i := range s.parts {
		if p := &s.parts[i]; p.date {
			dates = append(dates, p)
			half = half || p.text == "am/pm"
		}
	}
	for i, p := range dates {
		afterHours := i > 0 && strings.ContainsAny(dates[i-1].text, "hH")
		beforeSeconds := i+1 < len(dates) && strings.Contains(dates[i+1].text, "s")
		if half && p.text[0] == 'h' || (p.text == "m" || p.text == "mm") && (afterHours || beforeSeconds) {
			p.text = strings.ToUpper(p.text)
		}
	}
}

// dateLayouts are the layouts of package time of the parts of dates. M is for minutes,
// and H for hours from 1 to 12.
var dateLayouts = map[string]string{
	"y": "06", "yy": "06", "yyy": "2006", "yyyy": "2006", "m": "1", "mm": "01", "mmm": "Jan", "mmmm": "January",
	"d": "2", "dd": "02", "ddd": "Mon", "dddd": "Monday", "hh": "15", "H": "3", "HH": "03",
	"M": "4", "MM": "04", "s": "5", "ss": "05", "am/pm": "PM",
}

// perDay are the units of elapsed time.
var perDay = map[string]float64{"[h": 24, "[m": 1440, "[s": 86400}

// formatDate shows a time, whose serial number is n.
func (s *formatSection) formatDate(t time.Time, n float64) string {
	var b strings.Builder
	for _, p := range s.parts {
		switch layout := dateLayouts[p.text]; {
		case !p.date:
			b.WriteString(p.text)
		case layout != "":
			b.WriteString(t.Format(layout))
		case p.text == "h":
			b.WriteString(strconv.Itoa(t.Hour()))
		case perDay[p.text] > 0:
			b.WriteString(strconv.Itoa(int(n*perDay[p.text] + 1e-9)))
		default: // longer than the longest
			b.WriteString(t.Format(dateLayouts[p.text[:min(len(p.text), 4)]]))
		}
	}
	return strings.TrimSpace(b.String())
}

// format returns a number as it is displayed. from is the serial number of the
// day before which dates begin; see serialTime.
func (f numberFormat) format(n float64, from int) string {
	if len(f) == 0 {
		return general(n)
	}
	s, minus := &f[0], n < 0
	switch {
	case n < 0 && len(f) > 1:
		s, minus = &f[1], false
	case n == 0 && len(f) > 2:
		s = &f[2]
	}
	if s.date {
		if t, ok := serialTime(n, from); ok {
			return s.formatDate(t, n)
		}
	}
	if s.date || s.other {
		return general(n)
	}
	out := strings.TrimSpace(s.before + s.formatNumber(math.Abs(n)) + s.after)
	if minus && strings.ContainsAny(out, "123456789") {
		out = "-" + out
	}
	return out
}

// formatNumber shows a number that is not negative.
func (s *formatSection) formatNumber(n float64) string {
	switch s.number {
	case "":
		return ""
	case "general":
		return general(n)
	}
	if s.percent {
		n *= 100
	}
	if n <= 1e14 {
		n *= 1 + 5e-16 // so that rounding the binary digits is as rounding the decimal ones, half away from zero
	}
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(n, 'f', s.decimals, 64), ".")
	if whole == "0" {
		whole = ""
	}
	whole = strings.Repeat("0", max(s.digits-len(whole), 0)) + whole
	if s.thousands {
		for i := len(whole) - 3; i > 0; i -= 3 {
			whole = whole[:i] + "," + whole[i:]
		}
	}
	for len(fraction) > s.least && strings.HasSuffix(fraction, "0") {
		fraction = fraction[:len(fraction)-1]
	}
	if fraction == "" {
		return whole
	}
	return whole + "." + fraction
}

// general shows up to 15 significant digits, as many as are exact.
func general(n float64) string {
	if a := math.Abs(n); a != 0 && (a >= 1e15 || a < 1e-9) || math.IsInf(n, 0) || math.IsNaN(n) {
		return strconv.FormatFloat(n, 'G', -1, 64)
	}
	exact, err := strconv.ParseFloat(strconv.FormatFloat(n, 'g', 15, 64), 64)
	if err != nil {
		exact = n
	}
	return strconv.FormatFloat(exact, 'f', -1, 64)
}

// days1904 is the serial number of the first day of the 1904 date system in the
// other one.
const days1904 = 1462

// serialTime converts a serial number to a time (18.17.4), in seconds. from is 0 in
// the 1900 date system, in which 1900 is taken for a leap year, and days1904 in the
// other.
func serialTime(n float64, from int) (time.Time, bool) {
	n += float64(from)
	if n < 0 || n >= 2958466 { // the year 10000
		return time.Time{}, false
	}
	day := math.Floor(n)
	if day < 60 {
		day++
	}
	start := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(day))
	return start.Add(time.Duration(math.Round((n-math.Floor(n))*86400)) * time.Second), true
}
