package cos

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

func TestBudget(t *testing.T) {
	stop := errors.New("stop")
	checks := 0
	for _, tt := range []struct {
		name string
		b    *Budget
		work func(b *Budget) bool
		want error
	}{
		{"steps", NewBudget(10, 10, nil), func(b *Budget) bool { return b.Spend(10) && b.Alloc(10) && b.Spend(0) },
			nil},
		{"too many steps", NewBudget(10, 10, nil), func(b *Budget) bool { return b.Spend(11) }, errkind.TooLarge},
		{"too many bytes", NewBudget(10, 10, nil), func(b *Budget) bool { return b.Alloc(11) }, errkind.TooLarge},
		{"bytes given back", NewBudget(10, 10, nil), func(b *Budget) bool {
			s := b.Share()
			ok := s.Alloc(4) && s.Alloc(6)
			s.Free()
			return ok && b.Alloc(10)
		}, nil},
		{"check", NewBudget(10*checkEvery, 10, func() error { checks++; return nil }), func(b *Budget) bool {
			for range 5 * checkEvery {
				if !b.Spend(1) {
					return false
				}
			}
			return checks >= 4 && checks <= 5
		}, nil},
		{"check that fails", NewBudget(10*checkEvery, 10, func() error { return stop }),
			func(b *Budget) bool { return b.Spend(2 * checkEvery) }, stop},
	} {
		ok := tt.work(tt.b)
		if ok != (tt.want == nil) || !errors.Is(tt.b.Err(), tt.want) {
			t.Errorf("%s: work done %t, error %v, want %v", tt.name, ok, tt.b.Err(), tt.want)
		}
		// What was refused once is refused for good.
		if tt.want != nil {
			tt.b.Free(100)
			if tt.b.Spend(0) || tt.b.Alloc(0) {
				t.Errorf("%s: more work was allowed after a refusal", tt.name)
			}
		}
	}
}

// TestBudgetIsObeyed checks that no call of Spend or Alloc drops the result.
func TestBudgetIsObeyed(t *testing.T) {
	files, err := filepath.Glob("../*.go")
	more, err2 := filepath.Glob("*.go")
	if files = append(files, more...); err != nil || err2 != nil || len(files) < 10 {
		t.Fatalf("files %q, %v, %v", files, err, err2)
	}
	calls := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		drops := func(e ast.Expr) bool {
			call, ok := e.(*ast.CallExpr)
			if !ok {
				return false
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			return ok && (sel.Sel.Name == "Spend" || strings.EqualFold(sel.Sel.Name, "alloc"))
		}
		ast.Inspect(f, func(n ast.Node) bool {
			var dropped ast.Expr
			switch n := n.(type) {
			case *ast.CallExpr:
				if drops(n) {
					calls++
				}
			case *ast.ExprStmt:
				dropped = n.X
			case *ast.DeferStmt:
				dropped = n.Call
			case *ast.GoStmt:
				dropped = n.Call
			case *ast.AssignStmt:
				if id, ok := n.Lhs[0].(*ast.Ident); ok && id.Name == "_" && len(n.Rhs) == 1 {
					dropped = n.Rhs[0]
				}
			}
			if dropped != nil && drops(dropped) {
				t.Errorf("%s: the result of a call of the budget is dropped", fset.Position(n.Pos()))
			}
			return true
		})
	}
	if calls < 20 {
		t.Errorf("found %d calls, want many more: does the test look for the right names?", calls)
	}
}
