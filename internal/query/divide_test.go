package query_test

import (
	"slices"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/query"
)

func TestDivide(t *testing.T) {
	for _, tt := range []struct {
		in      string
		want    []string
		divided bool
	}{
		{"annual report", []string{"annual", "report"}, false},
		{"full-text Node.js don't", []string{"full-text", "Node.js", "don't"}, false},
		{"東京都", []string{"東京都"}, false},
		{"海外出張の日当", []string{"海外出張", "日当"}, true},
		{"日当はいくらですか", []string{"日当"}, false},
		{"会議はどこ", []string{"会議"}, false},
		{"犬と猫", []string{"犬", "猫"}, true},
		{"データ移行の手順", []string{"データ", "移行", "手順"}, true},
		{"PDFファイル", []string{"PDF", "ファイル"}, true},
		{"Node.jsの設定", []string{"Node.js", "設定"}, true},
		{"予算、経費。", []string{"予算", "経費"}, true},
		{"「予算」", []string{"予算"}, false},
		{"サーバーのエラー", []string{"サーバー", "エラー"}, true},
		{"おにぎり", []string{"おにぎり"}, false},
		{"3月の予算", []string{"3月", "予算"}, true},
		{"2025年度", []string{"2025年度"}, false},
		{"ISO規格", []string{"ISO", "規格"}, true},
		{"作り方", []string{"作り方"}, false},
		{"申し込み方法", []string{"申し込", "方法"}, true},
		{"食べ物の値段", []string{"食べ物", "値段"}, true},
		{"索引　検索", []string{"索引", "検索"}, false},
		{"年假有几天", []string{"年假有几天"}, false},
		{"VPN怎么设置", []string{"VPN", "怎么设置"}, true},
		{"연차는 며칠", []string{"연차", "며칠"}, false},
		{"도서관에서", []string{"도서관"}, false},
		{"วันลา", []string{"วันลา"}, false},
	} {
		got, divided := query.Divide(query.Fields(tt.in))
		if !slices.Equal(got, tt.want) || divided != tt.divided {
			t.Errorf("Divide(%q) = %q, %v, want %q, %v", tt.in, got, divided, tt.want, tt.divided)
		}
	}
}

func TestPieces(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{"handbook", nil},
		{"年假", nil},
		{"東京都", nil},
		{"年假有几天", []string{"假有", "几天", "年假", "有几"}},
		{"2025年度", []string{"2025", "年度"}},
		{"作り方", []string{"作", "方"}},
		{"연차휴가", []string{"연차", "차휴", "휴가"}},
		{"サーバー", nil},
		{"วันลา", []string{"ลา", "วั", "ัน", "นล"}},
	} {
		slices.Sort(tt.want)
		if got := query.Pieces(tt.in); !slices.Equal(got, tt.want) {
			t.Errorf("Pieces(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}
