package cli

import (
	"log/slog"
	"testing"
)

func TestLogLevel(t *testing.T) {
	for name, want := range map[string]slog.Level{
		"error": slog.LevelError, "warn": slog.LevelWarn, "info": slog.LevelInfo, "debug": slog.LevelDebug,
	} {
		if got := logLevel(name); got != want {
			t.Errorf("logLevel(%q) = %v, want %v", name, got, want)
		}
	}
}
