package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"wayside/edge/admin"
)

// backups makes those of the running broker, one at a time. It is admin.Backups.
type backups struct {
	b   *server
	ctx context.Context // ends with the broker
	wg  sync.WaitGroup

	mu     sync.Mutex // guards what follows
	status admin.BackupStatus
	cancel context.CancelFunc // of the one under way
}

func (b *server) startBackups() *backups {
	ctx, cancel := context.WithCancel(context.Background())
	k := &backups{b: b, ctx: ctx, status: admin.BackupStatus{State: admin.BackupNone}}
	b.push("backup", func(context.Context) error {
		cancel()
		k.wg.Wait()
		return nil
	})
	return k
}

// Start implements admin.Backups.
func (k *backups) Start(r admin.BackupRequest) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.status.State == admin.BackupRunning || k.ctx.Err() != nil {
		return false
	}
	ctx, cancel := context.WithCancel(k.ctx)
	k.cancel = cancel
	k.status = admin.BackupStatus{State: admin.BackupRunning, To: r.To}
	k.wg.Go(func() {
		defer cancel()
		k.run(ctx, r)
	})
	return true
}

func (k *backups) run(ctx context.Context, r admin.BackupRequest) {
	began := time.Now()
	err := k.b.store.Backup(ctx, r.To, r.Rate, func(done, total int64) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.status.Copied, k.status.Total = done, total
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.status.State, k.status.Error = admin.BackupFailed, err.Error()
		k.b.log.Warn("backup failed, nothing of it is left", "to", r.To, "err", err)
		return
	}
	k.status.State = admin.BackupDone
	k.b.log.Info("backup made", "to", r.To, "bytes", k.status.Copied, "took", time.Since(began).Round(time.Millisecond))
}

// Status implements admin.Backups.
func (k *backups) Status() admin.BackupStatus {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.status
}

// GiveUp implements admin.Backups.
func (k *backups) GiveUp() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cancel != nil {
		k.cancel()
	}
}

// backupPoll is how often the command asks how far a running broker is.
const backupPoll = 500 * time.Millisecond

// backupRunning has a running broker make a backup and waits for it. A signal gives it up.
func (m *Main) backupRunning(ctx context.Context, url string, r admin.BackupRequest) error {
	request, err := json.Marshal(r)
	if err != nil {
		return failed(exitFailed, "cannot ask for a backup", url, err.Error())
	}
	s, err := askBackup(ctx, url, http.MethodPost, request)
	for err == nil && s.State == admin.BackupRunning {
		timer := time.NewTimer(backupPoll)
		select {
		case <-timer.C:
			s, err = askBackup(ctx, url, http.MethodGet, nil)
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return giveUpBackup(ctx, url, r.To)
		}
	}
	switch {
	case err != nil:
		return err
	case s.State != admin.BackupDone || s.To != r.To:
		return failed(exitFailed, "the broker made no backup", r.To, s.Error)
	}
	fmt.Fprintf(m.Stdout, "%s: backup of the broker at %s, %s copied\n", r.To, url, roughSize(s.Copied))
	return nil
}

func giveUpBackup(ctx context.Context, url, to string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusTimeout)
	defer cancel()
	if _, err := askBackup(ctx, url, http.MethodDelete, nil); err != nil {
		return err
	}
	return failed(exitFailed, "backup was given up", to, "stopped by a signal, the broker takes away what it had")
}

func askBackup(ctx context.Context, url, method string, body []byte) (s admin.BackupStatus, err error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	status, raw, err := askAdmin(ctx, url, method, admin.BackupPath, bytes.NewReader(body))
	if err != nil {
		return s, err
	}
	if status != http.StatusOK {
		var refusal struct{ Reason string }
		if json.Unmarshal(raw, &refusal) != nil || refusal.Reason == "" || status == http.StatusNotFound {
			return s, noWayside(url, status)
		}
		return s, failed(exitFailed, "the broker makes no backup", url, refusal.Reason)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, failed(exitUnreachable, "no status of a Wayside", url, err.Error())
	}
	return s, nil
}
