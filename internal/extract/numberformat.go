package extract

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// A numberFormat is a format of numbers in a sheet (ECMA-376, part 1, 18.8.31).
// A nil *numberFormat is the format General.
//
// Names of months and days are in English. Formats whose display depends on the
// settings of the reader's computer show dates as in 2025-04-30.
type numberFormat struct{ sections []formatSection }

// A formatSection is a format for some numbers: for positive, negative and zero
// unless it has a condition.
type formatSection struct {
	tokens  []formatToken
	date    bool
	general bool
	cond    string // operator of a condition, "" if there is none
	limit   float64
}

type formatToken struct {
	kind tokenKind
	text string
}

type tokenKind int

const (
	literalToken tokenKind = iota
	digitToken             // 0, # or ?
	pointToken
	commaToken
	percentToken
	exponentToken // E+ or E-
	dateToken     // a run of y, m, d, h or s, AM/PM, or such a run in brackets
	textToken     // @
)

// builtinFormats are the formats that workbooks do not contain (18.8.30).
var builtinFormats = map[string]string{
	"1": "0", "2": "0.00", "3": "#,##0", "4": "#,##0.00", "5": "#,##0", "6": "#,##0", "7": "#,##0.00", "8": "#,##0.00",
	"9": "0%", "10": "0.00%", "11": "0.00E+00",
	"14": "yyyy-mm-dd", "15": "d-mmm-yy", "16": "d-mmm", "17": "mmm-yy", "18": "h:mm AM/PM", "19": "h:mm:ss AM/PM", "20": "h:mm", "21": "h:mm:ss",
	"22": "yyyy-mm-dd h:mm", "27": "yyyy-mm-dd", "28": "yyyy-mm-dd", "29": "yyyy-mm-dd", "30": "yyyy-mm-dd", "31": "yyyy-mm-dd", "32": "h:mm", "33": "h:mm:ss",
	"36": "yyyy-mm-dd", "37": "#,##0;(#,##0)", "38": "#,##0;(#,##0)", "39": "#,##0.00;(#,##0.00)", "40": "#,##0.00;(#,##0.00)",
	"41": "#,##0", "42": "#,##0", "43": "#,##0.00", "44": "#,##0.00", "45": "mm:ss", "46": "[h]:mm:ss", "47": "mm:ss.0", "48": "##0.0E+0",
	"50": "yyyy-mm-dd", "57": "yyyy-mm-dd", "58": "mmm-dd",
}

// parseNumberFormat returns nil for a format that shows numbers as General does.
func parseNumberFormat(code string) *numberFormat {
	switch {
	case code == "" || len(code) > 500 || strings.EqualFold(code, "general"):
		return nil
	case strings.Contains(code, "[$-F800]"), strings.Contains(code, "[$-x-sysdate]"):
		code = "yyyy-mm-dd"
	case strings.Contains(code, "[$-F400]"), strings.Contains(code, "[$-x-systime]"):
		code = "hh:mm:ss"
	}
	var f numberFormat
	for rest := code; len(f.sections) < 4; {
		var s formatSection
		s, rest = parseSection(rest)
		f.sections = append(f.sections, s)
		if rest == "" {
			break
		}
		rest = rest[1:] // the semicolon
	}
	return &f
}

// parseSection parses a section, up to a semicolon.
func parseSection(code string) (s formatSection, rest string) {
	add := func(kind tokenKind, text string) { s.tokens = append(s.tokens, formatToken{kind, text}) }
	for i := 0; i < len(code); {
		c := code[i]
		n := 1
		switch {
		case c == ';':
			return s, code[i:]
		case c == '"':
			n = strings.IndexByte(code[i+1:], '"') + 2
			if n < 2 {
				n = len(code) - i
			}
			add(literalToken, strings.Trim(code[i:i+n], `"`))
		case c == '\\' || c == '_' || c == '*':
			n = min(1+runeLen(code[i+1:]), len(code)-i)
			switch c {
			case '\\':
				add(literalToken, code[i+1:i+n])
			case '_':
				add(literalToken, " ")
			}
		case c == '[':
			if n = strings.IndexByte(code[i:], ']') + 1; n == 0 {
				n = len(code) - i
			}
			s.bracket(strings.Trim(code[i:i+n], "[]"))
		case hasFold(code[i:], "general"):
			n, s.general = 7, true
		case hasFold(code[i:], "am/pm"):
			n, s.date = 5, true
			add(dateToken, "am/pm")
		case hasFold(code[i:], "a/p"):
			n, s.date = 3, true
			add(dateToken, "am/pm")
		case strings.IndexByte("ymdhsYMDHS", c) >= 0:
			for i+n < len(code) && code[i+n]|0x20 == c|0x20 {
				n++
			}
			s.date = true
			add(dateToken, strings.ToLower(code[i:i+n]))
		case c == '0' || c == '#' || c == '?':
			add(digitToken, code[i:i+1])
		case c == '.':
			add(pointToken, ".")
		case c == ',':
			add(commaToken, ",")
		case c == '%':
			add(percentToken, "%")
		case hasFold(code[i:], "e+") || hasFold(code[i:], "e-"):
			n = 2
			add(exponentToken, code[i+1:i+2])
		case c == '@':
			add(textToken, "@")
		default:
			n = runeLen(code[i:])
			add(literalToken, code[i:i+n])
		}
		i += n
	}
	return s, ""
}

func hasFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// runeLen returns the length of the first rune of s.
func runeLen(s string) int {
	for i := range s {
		if i > 0 {
			return i
		}
	}
	return len(s)
}

// bracket processes the content of square brackets: a currency, a condition, an
// elapsed time or a colour.
func (s *formatSection) bracket(in string) {
	switch {
	case strings.HasPrefix(in, "$"):
		sign, _, _ := strings.Cut(in[1:], "-")
		s.tokens = append(s.tokens, formatToken{literalToken, sign})
	case in != "" && strings.IndexByte("<>=", in[0]) >= 0:
		op := in[:len(in)-len(strings.TrimLeft(in, "<>="))]
		if n, err := strconv.ParseFloat(in[len(op):], 64); err == nil {
			s.cond, s.limit = op, n
		}
	case in != "" && strings.Trim(strings.ToLower(in), strings.ToLower(in[:1])) == "" && strings.IndexByte("hms", in[0]|0x20) >= 0:
		s.date = true
		s.tokens = append(s.tokens, formatToken{dateToken, "[" + strings.ToLower(in[:1])})
	}
}

// format returns a number as it is displayed. from is the serial number of the
// day before which dates begin; see serialTime.
func (f *numberFormat) format(n float64, from int) string {
	if f == nil {
		return general(n)
	}
	s, minus := f.section(n)
	var out string
	switch {
	case s.general:
		out = general(math.Abs(n))
		if before, after := s.literals(); before+after != "" {
			out = before + out + after
		}
	case s.date:
		t, ok := serialTime(n, from)
		if !ok {
			return general(n)
		}
		return strings.TrimSpace(s.formatDate(t, n))
	case s.has(textToken) && !s.has(digitToken):
		return general(n)
	case s.fraction():
		return general(n)
	default:
		out = s.formatNumber(math.Abs(n))
	}
	if out = strings.TrimSpace(out); minus && strings.ContainsAny(out, "123456789") {
		out = "-" + out
	}
	return out
}

// section returns the section for a number, and whether a minus sign comes
// before it.
func (f *numberFormat) section(n float64) (s *formatSection, minus bool) {
	ss := f.sections
	for i := range ss {
		if ss[i].cond != "" {
			for i := range ss {
				if ss[i].matches(n) {
					return &ss[i], n < 0
				}
			}
			return &ss[len(ss)-1], n < 0
		}
	}
	switch {
	case n < 0 && len(ss) > 1:
		return &ss[1], false
	case n == 0 && len(ss) > 2:
		return &ss[2], false
	}
	return &ss[0], n < 0
}

func (s *formatSection) matches(n float64) bool {
	switch s.cond {
	case "<":
		return n < s.limit
	case "<=":
		return n <= s.limit
	case ">":
		return n > s.limit
	case ">=":
		return n >= s.limit
	case "=":
		return n == s.limit
	case "<>":
		return n != s.limit
	}
	return true
}

func (s *formatSection) has(kind tokenKind) bool {
	for _, t := range s.tokens {
		if t.kind == kind {
			return true
		}
	}
	return false
}

// fraction reports whether numbers are shown as fractions, such as 1 1/2.
func (s *formatSection) fraction() bool {
	for i, t := range s.tokens {
		if t.text == "/" && i > 0 && i+1 < len(s.tokens) && s.tokens[i-1].kind == digitToken && s.tokens[i+1].kind == digitToken {
			return true
		}
	}
	return false
}

// literals returns the literal texts around General.
func (s *formatSection) literals() (before, after string) {
	for _, t := range s.tokens {
		if t.kind == literalToken {
			before += t.text
		}
	}
	return before, ""
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

// formatNumber shows a number that is not negative.
func (s *formatSection) formatNumber(n float64) string {
	var whole, frac []formatToken
	before, after, exponent := "", "", ""
	thousands, decimals, least, expDigits := false, 0, 0, 0
	state := 0 // 0 before the digits, 1 in the integer, 2 in the decimals, 3 in the exponent, 4 after the digits
	last := -1
	for i, t := range s.tokens {
		if t.kind == digitToken || t.kind == pointToken || t.kind == exponentToken {
			last = i
		}
	}
	for i, t := range s.tokens {
		if i > last && last >= 0 && t.kind != commaToken {
			state = 4
		}
		switch t.kind {
		case percentToken:
			n *= 100
			after += "%"
		case commaToken:
			if i > last {
				n /= 1000
			} else if state == 1 {
				thousands = true
			}
		case pointToken:
			state = 2
		case exponentToken:
			exponent, state = t.text, 3
		case digitToken:
			switch state {
			case 0, 1:
				state = 1
				whole = append(whole, t)
			case 2:
				if frac = append(frac, t); t.text == "0" {
					least = len(frac)
				}
				decimals++
			case 3:
				expDigits++
			}
		case literalToken:
			switch state {
			case 0:
				before += t.text
			case 1:
				whole = append(whole, t)
			default:
				after += t.text
			}
		}
	}
	if last < 0 {
		return before + after // such as "n/a"
	}
	exp := ""
	if exponent != "" {
		n, exp = s.exponent(n, max(len(whole), 1), decimals, expDigits, exponent)
	}
	digits := strconv.FormatFloat(roundable(n), 'f', decimals, 64)
	integer, fraction, _ := strings.Cut(digits, ".")
	for len(fraction) > least && strings.HasSuffix(fraction, "0") {
		fraction = fraction[:len(fraction)-1]
	}
	out := fillDigits(integer, whole, thousands)
	if fraction != "" {
		out += "." + fraction
	}
	return before + out + exp + after
}

// roundable returns the neighbour of n from which rounding its binary digits
// gives the same as rounding its decimal digits, half away from zero.
func roundable(n float64) float64 {
	if n > 1e14 {
		return n
	}
	return n * (1 + 5e-16)
}

// exponent returns the mantissa and the exponent of a number. The exponent is a
// multiple of the number of digits of the integer.
func (s *formatSection) exponent(n float64, step, decimals, digits int, sign string) (float64, string) {
	e := 0
	if n > 0 {
		e = int(math.Floor(math.Log10(n)))
		e -= ((e % step) + step) % step
		n /= math.Pow10(e)
		if v, err := strconv.ParseFloat(strconv.FormatFloat(roundable(n), 'f', decimals, 64), 64); err == nil && v >= math.Pow10(step) {
			n, e = n/math.Pow10(step), e+step
		}
	}
	text := strconv.Itoa(max(e, -e))
	text = strings.Repeat("0", max(digits-len(text), 0)) + text
	switch {
	case e < 0:
		text = "-" + text
	case sign == "+":
		text = "+" + text
	}
	return n, "E" + text
}

// fillDigits puts the digits of an integer into their places, from the right.
func fillDigits(integer string, places []formatToken, thousands bool) string {
	if integer == "0" {
		integer = ""
	}
	var out []byte // reversed
	digit := func(c byte) {
		if n := digitsIn(out); thousands && n > 0 && n%3 == 0 {
			out = append(out, ',')
		}
		out = append(out, c)
	}
	first := 0 // the leftmost place takes all remaining digits
	for first < len(places) && places[first].kind != digitToken {
		first++
	}
	for i := len(places) - 1; i >= 0; i-- {
		if p := places[i]; p.kind == literalToken {
			for j := len(p.text) - 1; j >= 0; j-- {
				out = append(out, p.text[j])
			}
			continue
		}
		switch {
		case integer != "":
			digit(integer[len(integer)-1])
			integer = integer[:len(integer)-1]
		case places[i].text == "0":
			digit('0')
		}
		for i == first && integer != "" {
			digit(integer[len(integer)-1])
			integer = integer[:len(integer)-1]
		}
	}
	if len(places) == 0 {
		return integer
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return string(out)
}

func digitsIn(b []byte) int {
	n := 0
	for _, c := range b {
		if c >= '0' && c <= '9' {
			n++
		}
	}
	return n
}

// days1904 is the serial number of the first day of the 1904 date system in the
// other one.
const days1904 = 1462

// serialTime converts a serial number to a time (18.17.4). from is 0 in the 1900
// date system, in which 1900 is taken for a leap year, and days1904 in the other.
func serialTime(n float64, from int) (time.Time, bool) {
	n += float64(from)
	if n < 0 || n >= 2958466 { // the year 10000
		return time.Time{}, false
	}
	day := math.Floor(n)
	if day < 60 {
		day++
	}
	ms := math.Round((n - math.Floor(n)) * 86400e3)
	return time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(day)).Add(time.Duration(ms) * time.Millisecond), true
}

// formatDate shows a time, whose serial number is n.
func (s *formatSection) formatDate(t time.Time, n float64) string {
	var b strings.Builder
	ampm := false
	for _, k := range s.tokens {
		ampm = ampm || k.text == "am/pm" && k.kind == dateToken
	}
	subsecond := false
	for i := range s.tokens { // whether the seconds have decimals, which decides about rounding
		subsecond = subsecond || s.tokens[i].kind == pointToken
	}
	if !subsecond {
		t = t.Round(time.Second)
	}
	for i := 0; i < len(s.tokens); i++ {
		k := s.tokens[i]
		switch k.kind {
		case literalToken, commaToken:
			b.WriteString(k.text)
		case dateToken:
			b.WriteString(s.datePart(i, t, n, ampm))
		case pointToken:
			digits := 0
			for i+1 < len(s.tokens) && s.tokens[i+1].kind == digitToken {
				i, digits = i+1, digits+1
			}
			if digits == 0 {
				b.WriteByte('.')
			} else {
				b.WriteString(strconv.FormatFloat(float64(t.Nanosecond())/1e9, 'f', min(digits, 3), 64)[1:])
			}
		}
	}
	return b.String()
}

// datePart shows the part of a time that the token with this index is for.
func (s *formatSection) datePart(i int, t time.Time, n float64, ampm bool) string {
	hour := t.Hour()
	if ampm {
		hour = (hour+11)%12 + 1
	}
	switch text := s.tokens[i].text; text {
	case "[h":
		return strconv.Itoa(int(n*24 + 1e-9))
	case "[m":
		return strconv.Itoa(int(n*1440 + 1e-9))
	case "[s":
		return strconv.Itoa(int(n*86400 + 1e-9))
	case "am/pm":
		return t.Format("PM")
	case "y", "yy":
		return t.Format("06")
	case "d":
		return strconv.Itoa(t.Day())
	case "dd":
		return t.Format("02")
	case "ddd":
		return t.Format("Mon")
	case "h":
		return strconv.Itoa(hour)
	case "s":
		return strconv.Itoa(t.Second())
	case "m", "mm":
		if s.isMinute(i) {
			return pad(t.Minute(), len(text))
		}
		return pad(int(t.Month()), len(text))
	case "mmm":
		return t.Format("Jan")
	case "mmmm":
		return t.Format("January")
	case "mmmmm":
		return t.Format("Jan")[:1]
	default:
		switch text[0] {
		case 'y':
			return t.Format("2006")
		case 'd':
			return t.Format("Monday")
		case 'h':
			return pad(hour, 2)
		case 's':
			return pad(t.Second(), 2)
		}
		return t.Format("January")
	}
}

func pad(n, digits int) string {
	if n < 10 && digits > 1 {
		return "0" + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}

// isMinute reports whether the token m with this index is for minutes: after
// hours or before seconds.
func (s *formatSection) isMinute(i int) bool {
	for j := i - 1; j >= 0; j-- {
		if k := s.tokens[j]; k.kind == dateToken {
			if k.text[0] == 'h' || k.text == "[h" {
				return true
			}
			break
		}
	}
	for _, k := range s.tokens[i+1:] {
		if k.kind == dateToken {
			return k.text[0] == 's' || k.text == "[s"
		}
	}
	return false
}
