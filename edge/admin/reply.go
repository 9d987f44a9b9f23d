package admin

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// text is an answer that is no JSON value although it is called so, as Pulsar does with
// "ok", versions and bundle ranges.
type text string

// empty answers 200 without a body and without a content type: a value that is unset
// (protocol 5.1).
type empty struct{}

// withStatus answers with another status than 200.
type withStatus struct {
	status int
	body   any
}

// write answers a request that went well: nil is 204, everything else 200 and JSON.
func write(w http.ResponseWriter, value any) error {
	status := http.StatusOK
	if s, ok := value.(withStatus); ok {
		status, value = s.status, s.body
	}
	switch v := value.(type) {
	case nil:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case empty:
		w.WriteHeader(status)
		return nil
	case text:
		writeBytes(w, status, "application/json", []byte(v))
		return nil
	case message:
		maps.Copy(w.Header(), v.header)
		writeBytes(w, status, "application/octet-stream", v.body)
		return nil
	}
	body, err := encode(value)
	if err != nil {
		return err
	}
	writeBytes(w, status, "application/json", body)
	return nil
}

// encode is json.Marshal with < > & as they are: reasons and names hold them.
func encode(value any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// writeBytes sends a body. That the client is gone by then is nobody's error.
func writeBytes(w http.ResponseWriter, status int, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// reason is the body of every refusal.
type reason struct {
	Reason string `json:"reason"`
}

// rate is a number per second. It always has a decimal point, as Pulsar's have: typed
// clients tell 0.0 from 0.
type rate float64

// MarshalJSON writes infinities and the like, which JSON lacks, as 0.0.
func (r rate) MarshalJSON() ([]byte, error) {
	f := float64(r)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		f = 0
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return []byte(s), nil
}

// isoMillis is milliseconds since 1970 as text; 0, never, is the epoch itself.
func isoMillis(ms int64) string { return iso(time.UnixMilli(ms)) }

func iso(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
