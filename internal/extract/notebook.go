package extract

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
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

// extractNotebook extracts the cells of a notebook with their text outputs. Code
// and outputs are fenced as in Markdown. What is not a notebook is read as JSON.
func extractNotebook(ctx context.Context, t *Text, src string) {
	var n notebook
	err := json.NewDecoder(reader{ctx, strings.NewReader(src)}).Decode(&n)
	for _, w := range n.Worksheets {
		n.Cells = append(n.Cells, w.Cells...)
	}
	if err != nil || len(n.Cells) == 0 {
		extractJSON(ctx, t, src)
		_, syntax := errors.AsType[*json.SyntaxError](err)
		t.Damaged = syntax || errors.Is(err, io.ErrUnexpectedEOF)
		return
	}
	t.Title = oneLine(clean(ctx, string(n.Metadata.Title)))
	language := oneLine(string(n.Metadata.LanguageInfo.Name))
	if language == "" {
		language = oneLine(string(n.Metadata.KernelSpec.Language))
	}
	var out lines
	for _, c := range n.Cells {
		if ctx.Err() != nil {
			return
		}
		source := clean(ctx, string(c.Source+c.Input))
		out.blank()
		switch c.Type {
		case "code":
			if strings.TrimSpace(source) != "" {
				out.fenced(ctx, language, source)
			}
			for _, o := range c.Outputs {
				if text := clean(ctx, o.text(ctx)); strings.TrimSpace(text) != "" {
					out.blank()
					out.fenced(ctx, "output", text)
				}
			}
		case "heading":
			out.heading(c.Level, source)
		default:
			out.headed(ctx, &Text{Body: source, Headings: markdownHeadings(ctx, source)}, 0)
		}
	}
	out.finish(t)
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
				var t Text
				extractHTML(ctx, &t, string(s))
				return t.Body
			}
			return string(s)
		}
	}
	return ""
}

// fenced adds code in a fence that it does not contain.
func (l *lines) fenced(ctx context.Context, info, code string) {
	fence := "```"
	for strings.Contains(code, fence) && len(fence) < 20 {
		fence += "`"
	}
	l.add(fence + info)
	l.text(ctx, strings.Trim(code, "\n"))
	l.empty = false
	l.add(fence)
}
