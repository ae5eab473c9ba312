//go:build !unix

package ingest

// nonBlocking is 0 on systems without pipes in folders.
const nonBlocking = 0
