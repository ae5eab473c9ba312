module apk

go 1.26

require github.com/chainguard-dev/go-apk v0.0.0-20240605175618-f3471089c263

require (
	github.com/MakeNowJust/heredoc/v2 v2.0.1 // indirect
	github.com/chainguard-dev/clog v1.3.1 // indirect
	github.com/go-logr/logr v1.4.1 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/klauspost/compress v1.17.8 // indirect
	github.com/psanford/memfs v0.0.0-20230130182539-4dbf7e3e865e // indirect
	go.lsp.dev/uri v0.3.0 // indirect
	go.opentelemetry.io/otel v1.27.0 // indirect
	go.opentelemetry.io/otel/metric v1.27.0 // indirect
	go.opentelemetry.io/otel/trace v1.27.0 // indirect
	golang.org/x/exp v0.0.0-20230817173708-d852ddb80c63 // indirect
	golang.org/x/sync v0.7.0 // indirect
	golang.org/x/sys v0.21.0 // indirect
	gopkg.in/ini.v1 v1.67.0 // indirect
)
