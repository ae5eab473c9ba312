package extract

import "testing"

// The rows of tables in markup are lines with their cells kept apart.
func TestMarkupTables(t *testing.T) {
	for _, tt := range []struct{ name, file, in, want string }{
		{"list-table", "a.rst", "x\n\n.. list-table:: Parts in stock\n   :header-rows: 1\n   :widths: 1 2\n\n   * - Part\n     - Number of *pieces*\n   * - Bolt\n     - 12\n       or more\n\n       in the box\n   * -\n     - Nut\n   * - Only\n\ny\n",
			"x\n\nParts in stock\n\nPart | Number of pieces\nBolt | 12 or more in the box\n| Nut\nOnly\n\ny"},
		{"list-table with other bullets", "a.rst",
			".. list-table::\n\n    - * A\n      * B\n    -\n      * C\n      * - item\n        - other\n",
			"A | B\nC | - item - other"},
		{"list-table without rows", "a.rst", ".. list-table:: Parts\n\n   no list\n\ny\n", "Parts\n\n   no list\n\ny"},
		{"csv-table", "a.rst", ".. csv-table:: Parts\n   :header: \"Part\", \"Number, total\"\n   :widths: 1, 2\n\n   \"Bolt\", 12\n   \"A \"\"big\"\"\n   nut\", ``x, y``\n\nz\n",
			"Parts\n\nPart | Number, total\nBolt | 12\nA \"big\" nut | ``x | y``\n\nz"},
		{"csv-table with semicolons", "a.rst", ".. csv-table::\n   :delim: ;\n\n   Bolt; 1,2\n", "Bolt | 1,2"},
		{"LaTeX", "a.tex", "x\n\\begin{table}[h]\n\\caption{Parts}\n\\begin{tabular}{@{}lr@{}}\n\\toprule\nPart & Number \\\\ \\cmidrule(lr){1-2}\nBolt\t& 12 \\\\[2pt]\n\\multicolumn{2}{c}{\\textbf{R\\&D}} \\\\\n & \\makecell{a\\\\b} \\tabularnewline\n\\rowcolor{red} long & text\nhere\n\nand there \\\\ \\bottomrule\n\\end{tabular}\n\\end{table}\ny",
			"x\n\nParts\n\nPart | Number\nBolt | 12\nR&D\n| a b\nlong | text here and there\n\ny"},
		{"LaTeX with a table in a cell", "a.tex", "\\begin{tabular*}{3cm}{ll}\nA & \\begin{tabular}{c}one\\\\two & 2\\end{tabular} \\\\\nB & $a & b$\\newline c\n\\end{tabular*}", "A | one two 2\nB | $a & b$ c"},
		{"tbl", "a.1", ".TH A 1\n.SH TABLE\n.TS\nallbox tab(:) ;\nlb lb\nl l.\nPart:Number\n_\n\\fBBolt\\fR:T{\nTwelve\n.B or\nmore, see\n.BR bolt (5).\nT}:x\nNut:\\^\n.T&\nc s.\n=\nThe end\n.TE\n.PP\nText.\n",
			"TABLE\n\nPart | Number\nBolt | Twelve or more, see bolt(5). | x\nNut\nThe end\n\nText."},
		{"tbl with tabs", "a.1", ".TH A 1\n.TS\nl lw(3i)\n---\nl l.\n.\\\" comment\nA\tB\nT{\nlong\n.br\ntext\nT}\tT{\nmore\nT}\n.5\t1\n.sp\nend\n.TE\n", "A | B\nlong text | more\n.5 | 1\nend"},
		{"tbl without an end", "a.1", ".TH A 1\n.TS\nl l.\nA\tT{\nb\n.SH NEXT\ntext\n", "A | b\n\nNEXT\n\ntext"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if x := mustExtract(t, Input{Name: tt.file, Data: []byte(tt.in)}); x.Body != tt.want {
				t.Errorf("body = %q, want %q", x.Body, tt.want)
			}
		})
	}
}
