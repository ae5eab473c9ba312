package fess

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree reads a value with a scanner and builds what encoding/json would.
func tree(s *scanner) (any, bool) {
	switch s.space() {
	case '{':
		m := map[string]any{}
		ok := s.object(func(name []byte) bool {
			v, ok := tree(s)
			m[string([]rune(string(name)))] = v
			return ok
		})
		return m, ok
	case '[':
		l := []any{}
		ok := s.array(func() bool {
			v, ok := tree(s)
			l = append(l, v)
			return ok
		})
		return l, ok
	}
	raw, ok := s.value()
	if !ok {
		return nil, false
	}
	switch text, _ := scalar(string(raw)); raw[0] {
	case '"':
		return text, true
	case 't', 'f':
		return text == "true", true
	case 'n':
		return nil, true
	default:
		return json.Number(text), true
	}
}

// checkScan holds a scanner against encoding/json.
func checkScan(t *testing.T, data []byte) {
	t.Helper()
	var want any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	valid := json.Valid(data)
	if valid && d.Decode(&want) != nil {
		t.Fatalf("%q is valid and cannot be decoded", data)
	}
	s := &scanner{data: data}
	if ok := s.skip() && s.ended(); ok != valid {
		t.Fatalf("skip of %.200q = %t, want %t", data, ok, valid)
	}
	s = &scanner{data: data}
	got, ok := tree(s)
	if ok = ok && s.ended(); ok != valid {
		t.Fatalf("%.200q read piece by piece = %t, want %t", data, ok, valid)
	}
	if valid {
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%.200q (-encoding/json +scanner):\n%s", data, d)
		}
	}
}

var scanSeeds = []string{
	``, ` `, `null`, ` true `, `false`, `nul`, `truex`, `"a"`, `"a`, `"`, `"\`, `"\"`, `"\x"`, "\"\t\"", "\"\x7f\"", "\"\xff\xfe\"", "\"\xff\\n\xc3\"",
	`"\u00e9\/\b\f\n\r\t\\\""`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ud83dx"`, `"\ud83d\u0041"`, `"\ude00\ud83d\ude00"`, `"\u12"`, `"\u12g4"`, `"\uD83D\uDE0"`, `"検索\u691C"`,
	`0`, `-0`, `01`, `-`, `1.`, `1.5e+3`, `1E-7`, `1e`, `.5`, `+1`, `1e1000`, `12345678901234567890`, `0x1`, `-a`,
	`[]`, `[ ]`, `[1,]`, `[,1]`, `[1 2]`, `[1,2`, `[`, `]`, `[[],[[{}]]]`, `{}`, `{ }`, `{"a":1}`, `{"a" : 1 , "b":[true,null]}`, `{"a":1,}`, `{"a"}`, `{a:1}`, `{"a":1 "b":2}`,
	`{"a":1,"a":2}`, `{"\u0061":1,"a\\b":2}`, "{\"\xff\":1}", `{"a":{"b":{"c":[{}]}}} x`, `{} {}`, "\ufeff{}", `{"":""}`,
}

func TestScan(t *testing.T) {
	for _, data := range scanSeeds {
		checkScan(t, []byte(data))
	}
	for depth, want := range map[int]bool{maxDepth: true, maxDepth + 1: false, 1 << 20: false} {
		s := &scanner{data: []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth))}
		if got := s.skip(); got != want {
			t.Errorf("skip of %d lists = %t, want %t", depth, got, want)
		}
	}
}

// FuzzScan holds the scanner against encoding/json.
func FuzzScan(f *testing.F) {
	for _, data := range scanSeeds {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) <= maxDepth {
			checkScan(t, data)
		}
	})
}

// Rows beyond those that can have been asked for are read and forgotten, and so
// are those without an ID.
func TestRowsAreBounded(t *testing.T) {
	body := `{"record_count":1001,"data":[{"title":"x"},` + strings.Repeat(`{"doc_id":"a"},`, 10*maxNum) + `{"doc_id":""}]}`
	var a documents
	if s := (&scanner{data: []byte(body)}); !a.read(s) || len(a.Data) != maxNum {
		t.Errorf("%d rows were kept, want %d", len(a.Data), maxNum)
	}
}

func TestStringList(t *testing.T) {
	for raw, want := range map[string][]string{
		`"a"`: {"a"}, `5`: {"5"}, `["a", 1.50 ,true,null,{},["b"]]`: {"a", "1.50", "true"}, `[]`: nil, `{}`: nil, `null`: nil, ``: nil,
	} {
		if d := cmp.Diff(want, stringList(raw)); d != "" {
			t.Errorf("stringList(%s) (-want +got):\n%s", raw, d)
		}
	}
}
