package cli

import (
	"context"
	"log/slog"
	"time"

	"knowhow/internal/job"
)

const (
	// jobThreshold is the time after which a call becomes a job, if it is not
	// configured.
	jobThreshold = 2 * time.Second

	// jobKeep is how long a job is kept after its end.
	jobKeep = 10 * time.Minute

	// jobStop is the time limit for the end of running jobs when a server ends,
	// which takes at most a second.
	jobStop = 100 * time.Millisecond
)

// closeJobs ends all jobs. Work that does not return in time is abandoned.
func closeJobs(ctx context.Context, log *slog.Logger, all ...*job.Manager) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), jobStop)
	defer cancel()
	for _, m := range all {
		if err := m.Close(ctx); err != nil {
			log.Warn("leaving jobs behind that do not end", "error", err)
		}
	}
}
