package main

import (
	"database/sql"
	"path/filepath"
	"sync"
	"testing"
)

// TestStoreAll stores what is queued, in its order, before it says so.
func TestStoreAll(t *testing.T) {
	for _, limit := range []int{1, 10} {
		db, insert, err := openSQLite(filepath.Join(t.TempDir(), "entries.db"))
		if err != nil {
			t.Fatal(err)
		}
		queue := make(chan sqliteEntry, 25)
		var all sync.WaitGroup
		for i := range 25 {
			all.Add(1)
			queue <- sqliteEntry{[]byte{byte(i)}, func() {
				defer all.Done()
				var n int
				if err := db.QueryRow("SELECT count(*) FROM entries").Scan(&n); err != nil || n <= i {
					t.Errorf("limit %d: entry %d is confirmed with %d in the table, %v", limit, i, n, err)
				}
			}}
		}
		close(queue)
		if err := storeAll(db, insert, queue, limit); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		var mode, level, last string
		if err := db.QueryRow("PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
			t.Errorf("journal_mode %s, %v", mode, err)
		}
		if err := db.QueryRow("PRAGMA synchronous").Scan(&level); err != nil || level != "2" {
			t.Errorf("synchronous %s, %v", level, err)
		}
		if err := db.QueryRow("SELECT hex(body) FROM entries ORDER BY id DESC LIMIT 1").Scan(&last); err != nil || last != "18" {
			t.Errorf("the last entry is %s, %v", last, err)
		}
		closeSQLite(db, insert)
	}
}

func closeSQLite(db *sql.DB, insert *sql.Stmt) {
	insert.Close()
	db.Close()
}
