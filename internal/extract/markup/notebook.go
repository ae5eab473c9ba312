package markup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/extract/data"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// A notebook is a Jupyter notebook (nbformat 3 and 4).
type notebook struct {
	Metadata struct {
		Title        jsonText `json:"title"`
		LanguageInfo struct {
			Name jsonText `json:"name"`
		} `json:"language_info"`
		KernelSpec struct {
			Language jsonText `json:"language"`
		} `json:"kernelspec"`
	} `json:"metadata"`
	Cells      []cell `json:"cells"`
	Worksheets []struct {
		Cells []cell `json:"cells"`
	} `json:"worksheets"` // nbformat 3
}

// A cell is a cell of a notebook.
type cell struct {
	Type    jsonText     `json:"cell_type"`
	Source  jsonText     `json:"source"`
	Input   jsonText     `json:"input"` // nbformat 3
	Level   int          `json:"level"` // nbformat 3
	Outputs []cellOutput `json:"outputs"`
}

// A cellOutput is an output of a cell.
type cellOutput struct {
	Text  jsonText                   `json:"text"`
	Data  map[string]json.RawMessage `json:"data"`
	EName jsonText                   `json:"ename"`
	Value jsonText                   `json:"evalue"`
}

// A jsonText is a string, or a list of strings, which are joined. Other values
// are "".
type jsonText string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *jsonText) UnmarshalJSON(data []byte) error {
	var one string
	var many []string
	switch {
	case len(data) > 0 && data[0] == '"' && json.Unmarshal(data, &one) == nil:
		*t = jsonText(one)
	case len(data) > 0 && data[0] == '[' && json.Unmarshal(data, &many) == nil:
		*t = jsonText(strings.Join(many, ""))
	}
	return nil
}

// Notebook extracts the cells of a notebook with their text outputs. Code
// and outputs are fenced as in Markdown. What is not a notebook is read as JSON.
func Notebook(ctx context.Context, t *plain.Text, src string) {
	var n notebook
	err := json.NewDecoder(plain.NewReader(ctx, strings.NewReader(src))).Decode(&n)
	for _, w := range n.Worksheets {
		n.Cells = append(n.Cells, w.Cells...)
	}
	if err != nil || len(n.Cells) == 0 {
		data.JSON(ctx, t, src)
		_, syntax := errors.AsType[*json.SyntaxError](err)
		t.Damaged = syntax || errors.Is(err, io.ErrUnexpectedEOF)
		return
	}
	t.Title = plain.OneLine(plain.Clean(ctx, string(n.Metadata.Title)))
	language := plain.OneLine(string(cmp.Or(n.Metadata.LanguageInfo.Name, n.Metadata.KernelSpec.Language)))
	out := plain.NewWriter(ctx)
	for _, c := range n.Cells {
		if ctx.Err() != nil {
			return
		}
		source := plain.Clean(ctx, string(c.Source+c.Input))
		out.Blank()
		switch c.Type {
		case "code":
			if strings.TrimSpace(source) != "" {
				fenced(out, language, source)
			}
			for _, o := range c.Outputs {
				if text := plain.Clean(ctx, o.text(ctx)); strings.TrimSpace(text) != "" {
					out.Blank()
					fenced(out, "output", text)
				}
			}
		case "heading":
			out.Heading(c.Level, source)
		default:
			out.Part(&plain.Text{Body: source, Headings: markdownHeadings(ctx, source)}, 0)
		}
	}
	out.Finish(t)
}

// text returns the text of an output, or "".
func (o cellOutput) text(ctx context.Context) string {
	switch {
	case o.EName != "":
		return string(o.EName + ": " + o.Value)
	case o.Text != "":
		return string(o.Text)
	}
	for media := range o.Data {
		if strings.HasPrefix(media, "image/") {
			return "" // the text only names its type
		}
	}
	for _, media := range []string{"text/markdown", "text/plain", "text/html"} {
		var s jsonText
		if raw, ok := o.Data[media]; ok && s.UnmarshalJSON(raw) == nil && s != "" {
			if media == "text/html" {
				var t plain.Text
				HTML(ctx, &t, string(s))
				return t.Body
			}
			return string(s)
		}
	}
	return ""
}

// fenced adds code in a fence that it does not contain.
func fenced(out *plain.Writer, info, code string) {
	fence := "```"
	for strings.Contains(code, fence) && len(fence) < 20 {
		fence += "`"
	}
	out.Line(fence + info)
	out.Text(strings.TrimRight(strings.TrimLeft(code, "\n"), " \t\n"))
	out.Line(fence)
}
