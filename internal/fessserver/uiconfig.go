package fessserver

import "github.com/knowhow-mcp/knowhow/internal/search"

// An option is a choice on a search page. Its label is the key of a text in
// Fess's own pages.
type option struct {
	Value    string `json:"value"`
	LabelKey string `json:"label_key"`
}

// A labelOption is a label that can be chosen.
type labelOption struct {
	Value string `json:"value"`
	Name  string `json:"name"`
}

// uiConfig is the configuration of a search page. Clients request it to learn
// the functions of a server. There are no POST requests, so the token for them
// is empty.
type uiConfig struct {
	SiteName        string            `json:"site_name"`
	LoginRequired   bool              `json:"login_required"`
	Locales         []string          `json:"locales"`
	Theme           map[string]string `json:"theme"`
	Features        map[string]any    `json:"features"`
	PageSizeDefault int               `json:"page_size_default"`
	PageSizeMax     int               `json:"page_size_max"`
	SortOptions     []option          `json:"sort_options"`
	NumOptions      []int             `json:"num_options"`
	LangOptions     []option          `json:"lang_options"`
	LabelOptions    []labelOption     `json:"label_options"`
	Notifications   map[string]string `json:"notifications"`
	FacetViews      []any             `json:"facet_views"`
	FiletypeOptions []option          `json:"filetype_options"`
	CSRFRequired    bool              `json:"csrf_required"`
	CSRFToken       string            `json:"csrf_token"`
}

// uiConfig answers with the configuration of a search page.
func (c *call) uiConfig() {
	labels, err := c.labels()
	if err != nil {
		c.failV2(err)
		return
	}
	u := uiConfig{
		SiteName: "knowhow", Locales: []string{"en"}, Theme: map[string]string{},
		Features: map[string]any{
			"user_favorite": false, "popular_word": true, "suggest_search_log": false, "suggest_documents": true,
			"login_required": false, "eoled": false, "development_mode": false, "search_log_enabled": false,
			"thumbnail_enabled": false, "display_label_type": len(labels) > 0, "clipboard_copy_icon": false,
			"eol_link": "", "installation_link": "", "login_link": false, "rag_chat_enabled": false,
		},
		PageSizeDefault: defaultNum, PageSizeMax: search.MaxNum,
		SortOptions: []option{{"", "labels.search_result_sort_score_desc"},
			{"score.desc", "labels.search_result_sort_score_desc"}},
		NumOptions:      []int{10, 20, 30, 40, 50, 100},
		LangOptions:     []option{{"all", "labels.searchoptions_all_langs"}},
		LabelOptions:    []labelOption{},
		Notifications:   map[string]string{"search_top": "", "advance_search": "", "login": ""},
		FacetViews:      []any{},
		FiletypeOptions: []option{},
		CSRFRequired:    true,
	}
	for _, l := range labels {
		u.LabelOptions = append(u.LabelOptions, labelOption{string(*l.Value), string(l.Label)})
	}
	for _, field := range search.SortFields[1:] {
		u.SortOptions = append(u.SortOptions, option{field + ".asc", "labels.search_result_sort_" + field + "_asc"},
			option{field + ".desc", "labels.search_result_sort_" + field + "_desc"})
	}
	for _, kind := range [...]string{"html", "word", "excel", "powerpoint", "odt", "ods", "odp", "pdf", "txt",
		"others"} {
		u.FiletypeOptions = append(u.FiletypeOptions, option{kind, "labels.facet_filetype_" + kind})
	}
	c.writeV2(u)
}
