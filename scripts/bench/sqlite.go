package main

import (
	"database/sql"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // registers the driver
)

const (
	sqliteQueue = 4096 // entries that wait for their transaction
	sqliteGroup = 1024 // entries of one transaction at most
)

// serveSQLite is the broker that stores nothing, but puts every entry into a table of an SQLite database first: each in
// a transaction of its own, or all that have arrived meanwhile in one. It ends when the database fails.
func serveSQLite(address, file, way string) error {
	limit := 1
	switch way {
	case "each":
	case "group":
		limit = sqliteGroup
	default:
		return fmt.Errorf("want each or group, not %q", way)
	}
	db, insert, err := openSQLite(file)
	if err != nil {
		return err
	}
	defer db.Close()
	defer insert.Close()
	queue := make(chan sqliteEntry, sqliteQueue)
	failed := make(chan error, 2)
	go func() {
		failed <- serveNull(address, func(body []byte, done func()) { queue <- sqliteEntry{body, done} })
	}()
	go func() { failed <- storeAll(db, insert, queue, limit) }()
	return <-failed // and the process ends
}

func openSQLite(file string) (*sql.DB, *sql.Stmt, error) {
	// WAL with FULL syncs the log with every commit, and is the faster of the two durable ways.
	source := url.URL{Scheme: "file", Opaque: file, RawQuery: url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)"}}.Encode()}
	db, err := sql.Open("sqlite", source.String())
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err = db.Exec("CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, body BLOB NOT NULL)"); err == nil {
		var insert *sql.Stmt
		if insert, err = db.Prepare("INSERT INTO entries (body) VALUES (?)"); err == nil {
			return db, insert, nil
		}
	}
	db.Close()
	return nil, nil, err
}

type sqliteEntry struct {
	body []byte
	done func()
}

func storeAll(db *sql.DB, insert *sql.Stmt, queue <-chan sqliteEntry, limit int) error {
	group := make([]sqliteEntry, 0, limit)
	for e := range queue {
		group = append(group[:0], e)
		for len(group) < limit && len(queue) > 0 {
			group = append(group, <-queue)
		}
		if err := storeGroup(db, insert, group); err != nil {
			return fmt.Errorf("storing %d entries: %w", len(group), err)
		}
		for _, e := range group {
			e.done()
		}
	}
	return nil
}

// storeGroup inserts what is one entry without a transaction around it: a statement is one by itself.
func storeGroup(db *sql.DB, insert *sql.Stmt, group []sqliteEntry) error {
	if len(group) == 1 {
		_, err := insert.Exec(group[0].body)
		return err
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	within := tx.Stmt(insert)
	for _, e := range group {
		if _, err := within.Exec(e.body); err != nil {
			_ = tx.Rollback()
			return err
		}
	}
	return tx.Commit()
}
