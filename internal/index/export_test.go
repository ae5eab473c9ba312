package index

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// Version is the version of the tables.
var Version = len(migrations)

// MigrateForever runs all migrations in a data folder, prints "migrated" on
// stdout, and never commits.
func MigrateForever(dir string) error {
	stall := func(ctx context.Context, tx *sql.Tx) error {
		fmt.Println("migrated")
		time.Sleep(time.Hour)
		return nil
	}
	_, err := open(context.Background(), Options{Dir: dir}, slices.Concat(migrations, []migration{stall}))
	return err
}
