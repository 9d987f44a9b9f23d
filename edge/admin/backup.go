package admin

import (
	"net/http"
)

// BackupPath is where POST starts a backup of the running broker's store, GET tells of
// the last one and DELETE gives it up.
const BackupPath = "/admin/v2/wayside/backup"

// BackupRequest is what POST brings.
type BackupRequest struct {
	To   string `json:"to"`   // absolute path on the broker's machine of nothing, or of an empty directory
	Rate int64  `json:"rate"` // bytes a second at most, 0 for no limit
}

// States of a backup.
const (
	BackupNone    = "none" // there was none since the start
	BackupRunning = "running"
	BackupDone    = "done"
	BackupFailed  = "failed"
)

// BackupStatus tells of the last backup.
type BackupStatus struct {
	State  string `json:"state"`
	To     string `json:"to"`
	Copied int64  `json:"copied"` // bytes
	Total  int64  `json:"total"`
	Error  string `json:"error"` // why it failed
}

// Backups makes backups of the store, one at a time. Its methods do not wait for one.
type Backups interface {
	Start(BackupRequest) bool // false while one is under way
	Status() BackupStatus
	GiveUp()
}

func (s *Server) backupRoutes() {
	b := s.opts.Backups
	if b == nil {
		return
	}
	s.handle("GET "+BackupPath, func(*http.Request) (any, error) { return b.Status(), nil })
	s.handle("POST "+BackupPath, func(r *http.Request) (any, error) {
		var request BackupRequest
		if _, err := body(r, &request); err != nil {
			return nil, err
		}
		if request.To == "" || request.Rate < 0 {
			return nil, refuse(http.StatusPreconditionFailed, "A backup needs a path in \"to\", and no negative rate")
		}
		if !b.Start(request) {
			return nil, refuse(http.StatusConflict, "Another backup is under way")
		}
		return b.Status(), nil
	})
	s.handle("DELETE "+BackupPath, func(*http.Request) (any, error) {
		b.GiveUp()
		return b.Status(), nil
	})
}
