package admin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"wayside/edge"
)

// fakeBackups has room for one.
type fakeBackups struct{ s BackupStatus }

func (f *fakeBackups) Start(r BackupRequest) bool {
	if f.s.State == BackupRunning {
		return false
	}
	f.s = BackupStatus{State: BackupRunning, To: r.To, Total: r.Rate}
	return true
}
func (f *fakeBackups) Status() BackupStatus { return f.s }
func (f *fakeBackups) GiveUp()              { f.s.State = BackupFailed }

func TestBackup(t *testing.T) {
	fake := &fakeBackups{BackupStatus{State: BackupNone}}
	s, _ := newServer(t, func(o *Options, _ *edge.Options) { o.Backups = fake })
	for _, c := range []struct {
		method, body string
		status       int
		want         string
	}{
		{"GET", "", http.StatusOK, `"state":"none"`},
		{"POST", "", http.StatusPreconditionFailed, `needs a path`},
		{"POST", `{"to":"/b","rate":-1}`, http.StatusPreconditionFailed, `needs a path`},
		{"POST", `{"to":"/b","rate":5}`, http.StatusOK, `{"state":"running","to":"/b","copied":0,"total":5,"error":""}`},
		{"POST", `{"to":"/c"}`, http.StatusConflict, `Another backup is under way`},
		{"DELETE", "", http.StatusOK, `"state":"failed"`},
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(c.method, BackupPath, strings.NewReader(c.body)))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s: %d %s", c.method, c.body, w.Code, w.Body)
		}
	}
	without, _ := newServer(t)
	w := httptest.NewRecorder()
	if without.ServeHTTP(w, httptest.NewRequest("GET", BackupPath, nil)); w.Code != http.StatusNotFound {
		t.Errorf("without backups: %d", w.Code)
	}
}
