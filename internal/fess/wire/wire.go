// Package wire defines the JSON and the parameters of Fess's API, versions 1 (Fess
// 15.4) and 2 (Fess 15.7), and the page of a stored copy. The client decodes what
// package fessserver and the fake server encode.
//
// The members of the types are in the order in which Fess writes them.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Names of parameters of a search.
const (
	Query        = "q"
	ExtraQuery   = "ex_q"
	Start        = "start"
	Num          = "num"
	Sort         = "sort"
	Lang         = "lang"
	FieldLabel   = "fields.label"
	FacetField   = "facet.field"
	FacetQuery   = "facet.query"
	FacetSize    = "facet.size"
	FacetMinimum = "facet.minDocCount"
	FacetSort    = "facet.sort"
	FacetMissing = "facet.missing"
	GeoPoint     = "geo.location.point"
	GeoDistance  = "geo.location.distance"
)

// Values returns the values of a parameter that may be repeated, without blank
// values and repetitions (SearchRequestParams.simplifyArray).
func Values(params url.Values, name string) []string {
	var all []string
	seen := map[string]bool{}
	for _, v := range params[name] {
		if strings.TrimSpace(v) != "" && !seen[v] {
			seen[v] = true
			all = append(all, v)
		}
	}
	return all
}

// Int returns a parameter that is a number of Java's type int, and otherwise the
// given number.
func Int(params url.Values, name string, otherwise int) int {
	n, err := strconv.ParseInt(params.Get(name), 10, 32)
	if err != nil {
		return otherwise
	}
	return int(n)
}

// Below returns the rest of a clean path after a folder, or "" for the folder
// itself.
func Below(p, folder string) (below string, ok bool) {
	below, ok = strings.CutPrefix(p, folder)
	if below == "/" {
		below = ""
	}
	return below, ok && (below == "" || below[0] == '/')
}

// JSONType is the content type of JSON.
const JSONType = "application/json;charset=UTF-8"

// TimeForm is the form of times, in UTC.
const TimeForm = "2006-01-02T15:04:05.000Z"

// Values of Page.RecordCountRelation.
const (
	Exact   = "EQUAL_TO"
	AtLeast = "GREATER_THAN_OR_EQUAL_TO"
)

// ErrShape reports that an answer is not what Fess sends.
var ErrShape = errors.New("a value of another type was expected")

// A Number is a non-negative JSON number. When it is decoded, numbers above the
// maximum int32 become that maximum. All counts and times in answers are such
// numbers, except those in a row.
type Number int64

// UnmarshalJSON refuses any other value, including null.
func (n *Number) UnmarshalJSON(data []byte) error {
	var f float64
	if bytes.Equal(data, []byte("null")) || json.Unmarshal(data, &f) != nil || f < 0 {
		return ErrShape
	}
	*n = Number(min(f, math.MaxInt32))
	return nil
}

// A Text is a JSON string.
type Text string

// Texts returns strings as texts, never nil.
func Texts(list []string) List[Text] {
	all := make(List[Text], len(list))
	for i, s := range list {
		all[i] = Text(s)
	}
	return all
}

// UnmarshalJSON refuses any other value, including null.
func (t *Text) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		return ErrShape
	}
	return json.Unmarshal(data, (*string)(t))
}

// A List is a JSON list. When it is decoded, null is refused.
type List[T any] []T

// UnmarshalJSON refuses any other value.
func (l *List[T]) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '[' {
		return ErrShape
	}
	return json.Unmarshal(data, (*[]T)(l))
}

// A Row is one hit (QueryFieldConfig). Servers differ in the values that they
// send as strings, so every value may have any type; decoded numbers are of type
// json.Number.
type Row map[string]any

// maxRows is how many rows of an answer are decoded.
const maxRows = 100

// Rows are the hits of a page. Only the first hundred that have a document ID are
// decoded.
type Rows []Row

// UnmarshalJSON refuses a list that contains anything but objects.
func (r *Rows) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return ErrShape
	}
	*r = Rows{}
	for d.More() {
		var row Row
		if err := d.Decode(&row); err != nil || row == nil {
			return ErrShape
		}
		switch row["doc_id"].(type) {
		case string, json.Number, bool:
			if len(*r) < maxRows && row["doc_id"] != "" {
				*r = append(*r, row)
			}
		}
	}
	return nil
}

// A Page is the answer to a search. Members of type any are not decoded by the
// client, because servers differ in them.
type Page struct {
	Q                   any     `json:"q"` // a string, or null
	QueryID             any     `json:"query_id"`
	ExecTime            any     `json:"exec_time"` // seconds: v1 a number, v2 a string
	QueryTime           Number  `json:"query_time"`
	PageSize            Number  `json:"page_size"`
	PageNumber          any     `json:"page_number"`
	RecordCount         Number  `json:"record_count"`
	RecordCountRelation Text    `json:"record_count_relation"`
	PageCount           any     `json:"page_count"`
	HighlightParams     any     `json:"highlight_params"` // a string, or null
	NextPage            any     `json:"next_page"`
	PrevPage            any     `json:"prev_page"`
	StartRecordNumber   any     `json:"start_record_number"`
	EndRecordNumber     any     `json:"end_record_number"`
	PageNumbers         any     `json:"page_numbers"`
	Partial             bool    `json:"partial"`
	SearchQuery         any     `json:"search_query"`
	RequestedTime       any     `json:"requested_time"`
	RelatedQuery        any     `json:"related_query"`
	RelatedContents     any     `json:"related_contents"`
	Data                Rows    `json:"data"`
	FacetFields         []Facet `json:"facet_field,omitzero"` // nil unless requested, like FacetQueries
	FacetQueries        []Count `json:"facet_query,omitzero"`
}

// A Facet contains the counts of a field.
type Facet struct {
	Name   Text    `json:"name"`
	Result []Count `json:"result"`
}

// A Count is one value of a facet.
type Count struct {
	Value Text   `json:"value"`
	Count Number `json:"count"`
}

// Paginate sets the members about pages (QueryResponseList): of total hits, num
// are shown from start on. As in Fess, without a hit the division gives one page,
// or none if a page has one hit.
func (p *Page) Paginate(total, start, num int) {
	pages, number := (total-1)/num+1, start/num+1
	p.RecordCount, p.PageSize, p.PageCount, p.PageNumber = Number(total), Number(num), pages, number
	p.PrevPage, p.NextPage = start > 0, start < (pages-1)*num
	p.StartRecordNumber, p.EndRecordNumber = 0, 0
	if total > 0 {
		p.StartRecordNumber, p.EndRecordNumber = start+1, min(start+num, total)
	}
	const around = 5
	numbers := []string{}
	for n := max(number-around, 1); n <= min(number+around, pages); n++ {
		numbers = append(numbers, strconv.Itoa(n))
	}
	p.PageNumbers = numbers
}

// Labels are the answer to a request for labels. API v1 has Data, which it omits
// if there are none, and v2 has Labels.
type Labels struct {
	RecordCount Number      `json:"record_count"`
	Data        List[Label] `json:"data,omitempty"`
	Labels      List[Label] `json:"labels,omitzero"`
}

// A Label is one label. The value is required.
type Label struct {
	Label Text  `json:"label"`
	Value *Text `json:"value"`
}

// PopularWords are the answer to a request for popular words: Data in API v1, and
// PopularWords in v2.
type PopularWords struct {
	RecordCount  Number     `json:"record_count"`
	Data         List[Text] `json:"data,omitzero"`
	PopularWords List[Text] `json:"popular_words,omitzero"`
}

// Suggestions are the answer of API v1 to a request for suggestions. Data is
// omitted if there are none.
type Suggestions struct {
	QueryTime   Number           `json:"query_time"`
	RecordCount Number           `json:"record_count"`
	PageSize    *Number          `json:"page_size"`
	Data        List[Suggestion] `json:"data,omitempty"`
}

// SuggestionsV2 are the same in API v2.
type SuggestionsV2 struct {
	Q            any              `json:"q"`
	PageSize     *Number          `json:"page_size"`
	RecordCount  Number           `json:"record_count"`
	QueryTime    Number           `json:"query_time"`
	SuggestWords List[Suggestion] `json:"suggest_words"`
}

// A Suggestion is a word, with the labels of documents that contain it: Labels in
// API v1, and Types in v2. The text is required.
type Suggestion struct {
	Text   *Text  `json:"text"`
	Labels []Text `json:"labels,omitzero"`
	Types  []Text `json:"types,omitzero"`
}

// Health is the state of a server: Data in API v1, and Engine in v2.
type Health struct {
	Data   *Engine `json:"data,omitempty"`
	Engine *Engine `json:"engine,omitempty"`
	Error  *Error  `json:"error,omitempty"` // v2, a red engine
}

// An Engine is the state of the search engine: TimedOut is of API v1, and
// PingStatus of v2.
type Engine struct {
	Status     Text `json:"status"`
	TimedOut   any  `json:"timed_out,omitempty"`
	PingStatus any  `json:"ping_status,omitempty"`
}

// A Copy is the answer of API v2 with a stored copy.
type Copy struct {
	DocID    *Text `json:"doc_id"`
	MIMEType any   `json:"mimetype"`
	Content  *Text `json:"content"`
	URL      any   `json:"url"`
	Created  any   `json:"created"`
	Charset  any   `json:"charset"`
}

// An Error is the error in an answer of API v2.
type Error struct {
	Code    any      `json:"code"`
	Message any      `json:"message"`
	Details *Details `json:"details,omitempty"`
}

// Details are the details of an Error.
type Details struct {
	Engine *Engine `json:"engine,omitempty"`
}

// A Message is the answer of API v1 to a refused request.
type Message struct {
	Message string `json:"message"`
}

// CodeKey is the key of an error's code in API v1. It ends with a colon in the core
// of Fess up to 15.6 (SearchApiManager); the plugin for 15.7 leaves it out.
const CodeKey = "error_code:"

// ReadFault reads as much as possible of an answer with an error: its code, and the
// message of API v1. It returns "" for what is missing.
func ReadFault(body []byte) (code, message string) {
	var v struct {
		ColonCode any `json:"error_code:"`
		Code      any `json:"error_code"`
		Message   any `json:"message"`
		Response  struct {
			Error struct {
				Code any `json:"code"`
			} `json:"error"`
		} `json:"response"`
	}
	if json.Unmarshal(body, &v) != nil {
		return "", ""
	}
	for _, c := range []any{v.ColonCode, v.Code, v.Response.Error.Code} {
		if s, ok := c.(string); ok {
			code = s
		}
	}
	message, _ = v.Message.(string)
	return code, message
}

// codes are the error codes of API v2 and their HTTP statuses (package api.v2).
var codes = []struct {
	code   string
	status int
}{
	{"invalid_request", 400},
	{"auth_required", 401},
	{"unauthorized", 401},
	{"forbidden", 403},
	{"not_found", 404},
	{"method_not_allowed", 405},
	{"payload_too_large", 413},
	{"rate_limited", 429},
	{"internal_error", 500},
	{"service_unavailable", 503},
}

// StatusOf returns the HTTP status of an error code of API v2, or 0 for another
// text.
func StatusOf(code string) int {
	for _, c := range codes {
		if c.code == code {
			return c.status
		}
	}
	return 0
}

// codeOf returns the error code of an HTTP status.
func codeOf(status int) string {
	for _, c := range codes {
		if c.status == status {
			return c.code
		}
	}
	return ""
}

// Encode returns the JSON of an answer of API v1. Like Java's
// StringEscapeUtils.escapeJson, it is in ASCII, with a backslash before each slash.
func Encode(v any) ([]byte, error) {
	data, err := marshal(v)
	out := make([]byte, 0, len(data)+len(data)/4)
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case r == '/':
			out = append(out, '\\', '/')
		case r < utf8.RuneSelf:
			out = append(out, data[0])
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04X\u%04X`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04X`, r)
		}
		data = data[n:]
	}
	return out, err
}

// EncodeV2 returns the JSON of a successful answer of API v2 in its envelope. v is
// an object with members.
func EncodeV2(v any) ([]byte, error) {
	data, err := marshal(v)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"response":{"status":0,%s}`, data[1:]), nil
}

// EncodeError returns the JSON of an error of API v2. The code is that of the HTTP
// status. details may be nil.
func EncodeError(status int, message string, details *Details) ([]byte, error) {
	type response struct {
		Status int   `json:"status"` // 1: an error of the caller, 9: an error of the server
		Error  Error `json:"error"`
	}
	r := response{1, Error{codeOf(status), message, details}}
	if status >= 500 {
		r.Status = 9
	}
	return marshal(map[string]response{"response": r})
}

// marshal returns JSON without HTML escapes.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// Decode decodes an answer of API v1.
func Decode(body []byte, v any) error { return json.Unmarshal(body, v) }

// DecodeV2 decodes an answer of API v2, which is in an envelope.
func DecodeV2(body []byte, v any) error {
	var e struct{ Response json.RawMessage }
	if err := json.Unmarshal(body, &e); err != nil {
		return err
	}
	if len(e.Response) == 0 {
		return ErrShape
	}
	return json.Unmarshal(e.Response, v)
}
