package kbmcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
)

// registerUploads adds the tools for uploads.
func (t *tools) registerUploads(s *mcpserver.Server) {
	whole, unlisted := "", !t.o.Caller.Writes()
	if t.o.UploadPath != "" {
		whole = " With a shell, send the whole file instead of chunks: " +
			"PUT it to put_path on the host and port of this server, " +
			`for example with curl -T FILE, and with the same "Authorization" header.`
	}
	replaces := " A file replaces the document with the same source_path."
	if !reads(t.o.Caller) {
		replaces = ""
	}
	add(t, s, mcpserver.Tool{
		Name: "kb_upload_start", Title: "Start an upload",
		Description: fmt.Sprintf("Start the upload of a file to the knowledge base: kb_upload_start, then kb_upload_chunk "+
			"for each part, then kb_upload_finish, "+
			"all within %v.", t.o.Uploads.ttl()) + replaces + whole,
		Unlisted: unlisted,
	}, t.uploadStart)
	add(t, s, mcpserver.Tool{
		Name: "kb_upload_chunk", Title: "Upload a part of a file",
		Description: "Send the next part of a file. If you write the base64 yourself, send at most 8 KiB of the file in " +
			"one chunk, because longer ones are often damaged; " +
			"a program may send up to 1 MiB. Chunks are counted from 0 and may be sent in any order and repeated.",
		Idempotent: true, Unlisted: unlisted,
	}, t.uploadChunk)
	add(t, s, mcpserver.Tool{
		Name: "kb_upload_finish", Title: "Finish an upload",
		Description: "Pass the complete file to the knowledge base. The job that indexes it is listed by kb_jobs. An error " +
			"says which chunks are missing; send them and call this again.",
		Destructive: true, Idempotent: true, Unlisted: unlisted,
	}, t.uploadFinish)
}

// startArgs are the arguments of kb_upload_start.
type startArgs struct {
	Filename   string   `json:"filename" jsonschema:"Name of the file; its ending determines the format" limits:"minLength=1 maxLength=250"`
	TotalSize  int64    `json:"total_size" jsonschema:"Size of the file in bytes" limits:"minimum=1"`
	Tags       []string `json:"tags,omitempty" jsonschema:"Tags, by which searches can be narrowed" limits:"maxItems=50"`
	Collection string   `json:"collection,omitempty" jsonschema:"Collection of the file; by default documents" limits:"minLength=1 maxLength=100"`
	SourcePath string   `json:"source_path,omitempty" jsonschema:"Path by which the file is known; by default the filename" limits:"minLength=1 maxLength=1000"`
	SHA256     string   `json:"sha256,omitempty" jsonschema:"SHA-256 of the file in hex, to detect damage" limits:"minLength=1 maxLength=64"`
}

var sumPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (t *tools) uploadStart(ctx context.Context, in startArgs) (any, error) {
	tags, err := Tags(in.Collection, in.Tags)
	if err != nil {
		return nil, err
	}
	in.SHA256 = strings.ToLower(in.SHA256)
	switch {
	case strings.ContainsAny(in.Filename, `/\`) || strings.ContainsFunc(in.Filename, unicode.IsControl) ||
		strings.Trim(in.Filename, ". ") == "":
		return nil, &errkind.Argument{Name: "filename", Value: in.Filename,
			Want: "a name without folders; name these in " +
				"source_path"}
	case in.SHA256 != "" && !sumPattern.MatchString(in.SHA256):
		return nil, &errkind.Argument{Name: "sha256", Value: in.SHA256, Want: "64 hexadecimal digits"}
	}
	if err := kb.CheckWrite(ctx, Collection(tags)); err != nil {
		return nil, err
	}
	id, err := t.o.Uploads.begin(ctx, uploadStart{
		file: kb.File{Filename: in.Filename, SourcePath: in.SourcePath, Tags: tags}, size: in.TotalSize,
		sha256: in.SHA256,
	})
	if err != nil {
		return nil, err
	}
	r := struct {
		UploadID string `json:"upload_id"`
		PutPath  string `json:"put_path,omitempty"`
	}{UploadID: id}
	if t.o.UploadPath != "" {
		r.PutPath = t.o.UploadPath + "/" + id
	}
	return r, nil
}

// chunkArgs are the arguments of kb_upload_chunk.
type chunkArgs struct {
	UploadID   string `json:"upload_id" jsonschema:"As kb_upload_start returned it" limits:"minLength=1 maxLength=100"`
	Data       string `json:"data" jsonschema:"The bytes of the part, in base64" limits:"maxLength=2000000"`
	ChunkIndex int    `json:"chunk_index" jsonschema:"Number of the part, from 0" limits:"minimum=0 maximum=99999"`
}

func (t *tools) uploadChunk(ctx context.Context, in chunkArgs) (any, error) {
	data, err := base64.StdEncoding.DecodeString(in.Data)
	if at, ok := errors.AsType[base64.CorruptInputError](err); ok {
		return nil, fmt.Errorf(
			"data is not base64 with padding (RFC 4648), or was damaged at character %d; send the chunk again: %w",
			int64(at), errkind.Invalid)
	}
	if err != nil {
		return nil, fmt.Errorf("decoding data: %w", err)
	}
	return t.o.Uploads.chunk(ctx, in.UploadID, in.ChunkIndex, data)
}

// finishArgs are the arguments of kb_upload_finish.
type finishArgs struct {
	UploadID string `json:"upload_id" jsonschema:"As kb_upload_start returned it" limits:"minLength=1 maxLength=100"`
}

func (t *tools) uploadFinish(ctx context.Context, in finishArgs) (any, error) {
	job, err := t.o.Uploads.finish(ctx, in.UploadID, t.o.Base.AddFile)
	if err != nil {
		return nil, err
	}
	return started{job}, nil
}

// Route returns the route by which programs send whole files:
// PUT PATH/UPLOAD_ID. The responses are JSON, as those of the engine API.
func (a *Uploads) Route(path string) httpguard.Route {
	return httpguard.Route{
		Path: path, Tree: true,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a.serve(w, r, strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, path), "/"))
		}),
		Refuse: func(w http.ResponseWriter, _ *http.Request, f httpguard.Refusal) {
			if f.Status == http.StatusUnauthorized && f.Header.Get("WWW-Authenticate") == "" {
				w.Header().Set("WWW-Authenticate", `Bearer realm="mcp"`)
			}
			writeJSON(w, f.Status, errorBody{apiError{"REFUSED", f.Message}})
		},
	}
}

// An errorBody is the body of an error of the engine API.
type errorBody struct {
	Error apiError `json:"error"`
}

type apiError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// serve stores the body of a PUT as the file of an upload.
func (a *Uploads) serve(w http.ResponseWriter, r *http.Request, id string) {
	if r.Method != http.MethodPut {
		w.Header().Set("Allow", http.MethodPut)
		httpguard.Drain(w, r, httpguard.MaxDrained)
		writeJSON(w, http.StatusMethodNotAllowed, errorBody{apiError{"METHOD_NOT_ALLOWED", "send the file with PUT"}})
		return
	}
	state, err := a.put(r.Context(), id, r.ContentLength, httpguard.LongBody(w, r))
	if err == nil {
		writeJSON(w, http.StatusOK, state)
		return
	}
	httpguard.Drain(w, r, httpguard.MaxDrained)
	for _, k := range []struct {
		kind   error
		status int
		code   string
	}{
		{errkind.NotFound, http.StatusNotFound, "NOT_FOUND"},
		{errkind.Denied, http.StatusForbidden, "FORBIDDEN"},
		{errkind.Conflict, http.StatusConflict, "CONFLICT"},
		{errkind.TooLarge, http.StatusRequestEntityTooLarge, "TOO_LARGE"},
		{errkind.Invalid, http.StatusBadRequest, "INVALID_ARGUMENT"},
		{errkind.Unavailable, http.StatusServiceUnavailable, "UNAVAILABLE"},
	} {
		if errors.Is(err, k.kind) {
			writeJSON(w, k.status, errorBody{apiError{k.code, errkind.Message(err)}})
			return
		}
	}
	writeJSON(w, http.StatusInternalServerError, errorBody{apiError{"INTERNAL", "internal error"}})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // an error means that the client is gone
}
