package cli

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/kb"
)

// The result of adding a note is its id, or on stderr what happens to a note that could
// not be stored in time.
func TestNoteAdded(t *testing.T) {
	const kept = "The note is kept as job 7, which is queued. It is stored when the store or the engine answers and a process " +
		"works on the queue: serve, kb, engine or the next \"knowhow note add\".\n"
	number := int64(42)
	for _, tt := range []struct {
		job            kb.Job
		json           bool
		stdout, stderr string
		err            string
	}{
		{job: kb.Job{Status: kb.Done, DocumentID: &number}, stdout: "42\n"},
		{job: kb.Job{Status: kb.Done, DocumentID: &number}, json: true, stdout: `{"document_id":42,"job_id":7}` + "\n"},
		{job: kb.Job{Status: kb.Queued}, stderr: kept},
		{job: kb.Job{Status: kb.Queued}, json: true, stdout: `{"document_id":null,"job_id":7}` + "\n", stderr: kept},
		{job: kb.Job{Status: kb.Failed, Error: "no"}, err: "the note was not added: no"},
	} {
		var stdout, stderr bytes.Buffer
		v := &invocation{Env: Env{Program: "knowhow"}, stdout: &stdout, stderr: &stderr}
		message := ""
		if err := (&noteAddCommand{jsonFlag: jsonFlag{JSON: tt.json}}).print(v, 7, &tt.job); err != nil {
			message = err.Error()
		}
		got := []string{stdout.String(), stderr.String(), message}
		if diff := cmp.Diff([]string{tt.stdout, tt.stderr, tt.err}, got); diff != "" {
			t.Errorf("%+v (-want +got)\n%s", tt.job, diff)
		}
	}
}
