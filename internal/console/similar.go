package console

import "net/http"

// A Similar is a document that is similar to another one.
type Similar struct {
	ID     string  `json:"id"`
	Title  string  `json:"title"`
	Path   string  `json:"path"`
	Source string  `json:"source"` // the label
	Score  float64 `json:"score"`  // 0 to 1
}

// serveSimilar sends the documents that are similar to the one with the ID in the parameter
// id.
func (c *console) serveSimilar(w http.ResponseWriter, r *http.Request) {
	id, err := parameter(r.URL.Query(), "id", 1)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	list, err := c.o.Similar(r.Context(), id)
	c.send(w, r, append([]Similar{}, list...), err)
}
