package cli

import (
	"context"
	"log/slog"
	"time"

	"knowhow/internal/job"
)

const (
	// jobThreshold is how long a call may take before it becomes a job,
	// where no configuration says otherwise.
	jobThreshold = 2 * time.Second

	// jobKeep is how long a job can be asked for after its end.
	jobKeep = 10 * time.Minute

	// jobStop is how long the jobs that still run have to return when a
	// server ends: a part of the second in which it does.
	jobStop = 100 * time.Millisecond
)

// closeJobs ends all jobs. Work that does not return in time is left behind.
func closeJobs(ctx context.Context, log *slog.Logger, all ...*job.Manager) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), jobStop)
	defer cancel()
	for _, m := range all {
		if err := m.Close(ctx); err != nil {
			log.Warn("leaving jobs behind that do not end", "error", err)
		}
	}
}
