package audit

import (
	"maps"
	"net/http"
	"time"
)

// HandlerOptions configure Handler. All functions are required.
type HandlerOptions struct {
	// Begin returns the call that a request makes, without its time and result.
	Begin func(*http.Request) *Call

	// Check is called before a request is handled. A request is refused if it
	// returns an error.
	Check func() error

	// Record is called once for each call when its result is known, before anything
	// is sent. The answer is refused if it returns an error.
	Record func(*Call) error

	// Refuse answers a request in the form of the route, with the error of Check or
	// Record.
	Refuse func(http.ResponseWriter, *http.Request, error)
}

// Handler returns a handler that records the calls of next. A call is recorded when next
// first writes to its response or sends the header, with the documents that have been
// added by then; what it took ends at that moment. If it cannot be recorded, nothing of
// the response is sent, and writes to it fail.
//
// A handler that panics before that is recorded with status 500. Informational responses
// (1xx) are sent without a record. Connections that next takes over are not supported.
func Handler(next http.Handler, o HandlerOptions) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := o.Check(); err != nil {
			o.Refuse(w, r, err)
			return
		}
		call := o.Begin(r)
		call.Time = time.Now()
		rec := &recorder{ResponseWriter: w, request: r, options: o, call: call, header: w.Header().Clone()}
		r = r.WithContext(With(r.Context(), call))
		returned := false
		defer func() {
			if returned {
				rec.record(http.StatusOK)
			} else if !rec.recorded {
				rec.recorded = true
				rec.err = rec.end(http.StatusInternalServerError) // net/http closes the connection
			}
		}()
		next.ServeHTTP(rec, r)
		returned = true
	})
}

// A recorder is a response that is recorded before it is sent.
type recorder struct {
	http.ResponseWriter
	request *http.Request
	options HandlerOptions
	call    *Call
	header  http.Header // before the handler

	recorded bool
	err      error // of recording
}

// record records the call unless that has been done, and answers with the refusal if it
// fails. It returns the error of recording.
func (r *recorder) record(status int) error {
	if r.recorded {
		return r.err
	}
	r.recorded = true
	if r.err = r.end(status); r.err != nil {
		clear(r.Header())
		maps.Copy(r.Header(), r.header)
		r.options.Refuse(r.ResponseWriter, r.request, r.err)
	}
	return r.err
}

// end records the call with its result.
func (r *recorder) end(status int) error {
	r.call.Status = status
	r.call.Took = time.Since(r.call.Time)
	return r.options.Record(r.call)
}

// WriteHeader implements [http.ResponseWriter].
func (r *recorder) WriteHeader(status int) {
	informational := status < http.StatusOK && status != http.StatusSwitchingProtocols
	if informational && !r.recorded || r.record(status) == nil {
		r.ResponseWriter.WriteHeader(status)
	}
}

// Write implements [http.ResponseWriter]. It returns the error of recording if the call
// could not be recorded.
func (r *recorder) Write(data []byte) (int, error) {
	if err := r.record(http.StatusOK); err != nil {
		return 0, err
	}
	return r.ResponseWriter.Write(data)
}

// FlushError sends what has been written. [http.ResponseController] calls it.
func (r *recorder) FlushError() error {
	if err := r.record(http.StatusOK); err != nil {
		return err
	}
	return http.NewResponseController(r.ResponseWriter).Flush()
}

// Flush implements [http.Flusher].
func (r *recorder) Flush() { _ = r.FlushError() }

// Unwrap returns the response that is recorded, for [http.ResponseController].
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
