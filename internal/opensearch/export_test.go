package opensearch

import "time"

// WithVersion returns options for indexes of another version, which do not have
// some fields.
func WithVersion(o Options, version int, without ...string) Options {
	o.version, o.fields = meta{version, version}, without
	return o
}

// WithMigration returns options with a time after which a lease ends, and a
// function that a migration calls for each batch.
func WithMigration(o Options, lease time.Duration, copied func() error) Options {
	o.leaseTime, o.copied = lease, copied
	return o
}
