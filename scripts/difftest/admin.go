package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// adminTime bounds one request to the admin interface.
const adminTime = 20 * time.Second

// admin asks the admin interface; what it says to it is the status, and the body of an error is left out.
func admin(method, path, body string) step {
	return step{title: method + " " + path + " " + body, do: func(w *world) error {
		code, _, err := w.ask(method, w.expand(path), w.expand(body))
		if err != nil {
			return err
		}
		w.arrived(&event{stream: "admin", text: fmt.Sprintf("%s %s: %d", method, path, code)})
		return nil
	}}
}

// figures asks for the statistics of a topic and tells some of them, by their paths.
func figures(topic string, fields ...string) step {
	path := "/admin/v2/" + strings.Replace(full(topic), "://", "/", 1) + "/stats?getPreciseBacklog=true"
	return step{title: "stats of " + topic, do: func(w *world) error {
		code, body, err := w.ask("GET", w.expand(path), "")
		if err != nil {
			return err
		}
		var all any
		if code == http.StatusOK {
			if err := json.Unmarshal(body, &all); err != nil {
				return err
			}
		}
		told := []string{fmt.Sprint(code)}
		for _, f := range fields {
			told = append(told, f+"="+find(all, f))
		}
		w.arrived(&event{stream: "admin", text: strings.Join(told, " ")})
		return nil
	}}
}

// seated waits until the subscription s of a topic has so many consumers: a broker learns of the end of a connection
// when it gets round to it.
func seated(topic string, n int) step {
	path := "/admin/v2/" + strings.Replace(full(topic), "://", "/", 1) + "/stats"
	return step{title: fmt.Sprintf("%d are left", n), do: func(w *world) error {
		for end := time.Now().Add(adminTime); time.Now().Before(end); time.Sleep(10 * tick) {
			_, body, err := w.ask("GET", w.expand(path), "")
			if err != nil {
				return err
			}
			var all any
			if json.Unmarshal(body, &all) == nil && find(all, "subscriptions/s/consumers") == fmt.Sprintf("%d of them", n) {
				return nil
			}
		}
		return fmt.Errorf("a consumer did not go")
	}}
}

// find follows a path of names and ordinals through decoded JSON.
func find(v any, path string) string {
	for _, name := range strings.Split(path, "/") {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(in) {
				return "none"
			}
			v = in[i]
		default:
			return "none"
		}
	}
	switch in := v.(type) {
	case []any:
		return fmt.Sprintf("%d of them", len(in))
	case nil:
		return "none"
	}
	return fmt.Sprint(v)
}

// ask makes one request.
func (w *world) ask(method, path, body string) (int, []byte, error) {
	return ask(w.side.admin, method, path, body)
}

func ask(admin, method, path, body string) (int, []byte, error) {
	r, err := http.NewRequest(method, "http://"+admin+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: adminTime}
	answer, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	return answer.StatusCode, b, err
}
