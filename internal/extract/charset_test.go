package extract

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
)

// Texts that are not ASCII.
const (
	japaneseText = "この文書では、全文検索サーバーの設定方法について説明します。インストールが完了したら、管理画面を開いてください。クロール対象のフォルダーを指定すると、文書が索引に登録されます。検索結果にはタイトルと要約が表示されます。"
	germanText   = "Dieses Dokument erklärt, wie der Server für die Volltextsuche eingerichtet wird. Öffnen Sie nach der Installation die Seite für die Verwaltung. Die Ergebnisse der Suche zeigen den Titel und eine kurze Übersicht."
)

func encode(t *testing.T, e encoding.Encoding, s string) []byte {
	t.Helper()
	b, err := e.NewEncoder().Bytes([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCharsetDeclared(t *testing.T) {
	sjis := string(encode(t, japanese.ShiftJIS, "日本"))
	tests := []struct{ name, media, in, want string }{
		{"header", "text/html; charset=Shift_JIS", "<p>" + sjis, "日本"},
		{"meta", "", `<meta charset="shift_jis"><p>` + sjis, "日本"},
		{"meta http-equiv", "", `<META http-equiv='Content-Type' content='text/html; charset=x-sjis'><p>` + sjis, "日本"},
		{"XML", "", `<?xml version="1.0" encoding="Shift_JIS"?><p>` + sjis, "日本"},
		{"mark wins", "text/html; charset=shift_jis", "\ufeff<p>日本", "日本"},
		{"header wins over meta", "text/html; charset=shift_jis", `<meta charset=utf-8><p>` + sjis, "日本"},
		{"meta of UTF-16 means UTF-8", "", `<meta charset=utf-16><p>日本`, "日本"},
		{"unknown name", "text/html; charset=klingon", `<p>日本`, "日本"},
		{"false UTF-8", "text/html; charset=utf-8", `<meta charset=shift_jis><p>` + sjis, "日本"},
		{"UTF-8 with one bad byte", "text/html; charset=utf-8", "<p>" + strings.Repeat("ü", 100) + "\xff",
			strings.Repeat("ü", 100) + "\ufffd"},
		{"a charset that browsers refuse", "text/html; charset=iso-2022-kr", "<p>abc", "abc"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := mustExtract(t, Input{Name: "a.html", MediaType: tt.media,
				Data: []byte(tt.in)}).Body; got != tt.want {
				t.Errorf("body = %q, want %q", got, tt.want)
			}
		})
	}
}
