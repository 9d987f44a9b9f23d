package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"wayside/edge"
)

// topicOf is the topic that a path names. The path was decoded once; what is encoded in
// it still belongs to the name (protocol 5.1).
func topicOf(r *http.Request, domain string) (edge.TopicName, error) {
	tenant, namespace, local := r.PathValue("tenant"), r.PathValue("namespace"), r.PathValue("topic")
	if !edge.ValidPart(tenant) || !edge.ValidPart(namespace) {
		return edge.TopicName{}, refuse(http.StatusPreconditionFailed, "Namespace name is not valid")
	}
	if !utf8.ValidString(local) {
		return edge.TopicName{}, refuse(http.StatusPreconditionFailed, "Topic name is not valid UTF-8")
	}
	return edge.NewTopicName(domain, tenant, namespace, local)
}

// namespaceOf is the namespace that a path names, "tenant/namespace".
func namespaceOf(r *http.Request) (string, error) {
	tenant, namespace := r.PathValue("tenant"), r.PathValue("namespace")
	if !edge.ValidPart(tenant) || !edge.ValidPart(namespace) {
		return "", refuse(http.StatusPreconditionFailed, "Namespace name is not valid")
	}
	return tenant + "/" + namespace, nil
}

// maxSubscriptionName bounds the name in bytes: it is part of a key in the store.
const maxSubscriptionName = 512

// subscriptionOf is the subscription that a path names; it may hold any character.
func subscriptionOf(r *http.Request) (string, error) {
	name := r.PathValue("subscription")
	if name == "" || len(name) > maxSubscriptionName || !utf8.ValidString(name) {
		return "", refuse(http.StatusPreconditionFailed, "Subscription name has to be 1 to %d bytes of UTF-8", maxSubscriptionName)
	}
	return name, nil
}

// switchOn reads a query parameter that is true or false, false when absent or odd.
func switchOn(r *http.Request, name string) bool {
	return strings.EqualFold(r.URL.Query().Get(name), "true")
}

// switchOr is switchOn with another value for the absent one.
func switchOr(r *http.Request, name string, absent bool) bool {
	if !r.URL.Query().Has(name) {
		return absent
	}
	return switchOn(r, name)
}

// body reads a JSON body into value and reports whether there was one. Nothing and
// null count as none; unknown members are ignored; what follows the value is refused.
func body(r *http.Request, value any) (present bool, err error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return false, refuse(http.StatusRequestEntityTooLarge, "Body is larger than %d bytes", tooLarge.Limit)
		}
		return false, refuse(http.StatusBadRequest, "Body could not be read")
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 || string(data) == "null" {
		return false, nil
	}
	if !jsonish(r.Header.Get("Content-Type")) {
		return false, refuse(http.StatusUnsupportedMediaType, "Content type has to be application/json")
	}
	if err := json.Unmarshal(data, value); err != nil {
		return false, refuse(http.StatusBadRequest, "Body is not what is expected here: %s", complaint(err))
	}
	return true, nil
}

// jsonish reports whether a body so called is read as JSON: no type at all, JSON under
// its several names, and plain text, which Pulsar takes too.
func jsonish(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	return media == "text/plain" || media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json")
}

// complaint says what is wrong with JSON in the words of its author, not of our types.
func complaint(err error) string {
	if t := (*json.UnmarshalTypeError)(nil); errors.As(err, &t) {
		where := "the value"
		if t.Field != "" {
			where = strconv.Quote(t.Field)
		}
		return fmt.Sprintf("%s cannot be a %s", where, t.Value)
	}
	return err.Error()
}

// number is an integer as clients send it: 2, 2.0 or "2" (watched on 4.0.7).
type number int64

// UnmarshalJSON refuses what is no whole number within 64 bits. null leaves it as it is.
func (n *number) UnmarshalJSON(data []byte) error {
	s := string(bytes.TrimSpace(data))
	if s == "null" {
		return nil
	}
	if unquoted, err := strconv.Unquote(s); err == nil {
		s = strings.TrimSpace(unquoted)
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		*n = number(i)
		return nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return errors.New("a whole number is expected")
	}
	*n = number(f)
	return nil
}
