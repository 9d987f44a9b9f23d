package uplink

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apache/pulsar-client-go/pulsar"
)

// trouble is what an error of the official client means for the line.
type trouble int

const (
	unreachable trouble = iota // the cloud cannot be reached or is not ready: try again soon
	refused                    // the cloud will not have this topic as things stand: it waits, with its reason
	credentials                // the cloud does not accept who we are, whatever the topic
	poison                     // the cloud will never take this message: it is parked
)

// classify sorts an error of the client. Creation errors are plain text: "server
// error: <ServerError>: <message>", and of a lookup the bare name of the ServerError.
func classify(err error) trouble {
	text := err.Error()
	switch {
	case errors.Is(err, pulsar.ErrMessageTooLarge), errors.Is(err, pulsar.ErrMetaTooLarge),
		errors.Is(err, pulsar.ErrInvalidMessage), errors.Is(err, pulsar.ErrFailAddToBatch),
		strings.Contains(text, "exceeds MaxMessageSize"):
		return poison
	case errors.Is(err, pulsar.ErrSchema) && strings.Contains(text, "IncompatibleSchema"):
		return poison
	case errors.Is(err, pulsar.ErrTopicTerminated), errors.Is(err, pulsar.ErrTopicNotfound),
		errors.Is(err, pulsar.ErrProducerFenced), errors.Is(err, pulsar.ErrProducerBlockedQuotaExceeded):
		return refused
	}
	name, _ := serverError(text)
	return serverTrouble(name)
}

// late reports whether a refusal came when the client had later messages in its hands,
// which it goes on to send: it finds out when it closes a batch.
func late(err error) bool {
	return strings.Contains(err.Error(), "exceeds MaxMessageSize") || errors.Is(err, pulsar.ErrFailAddToBatch)
}

func serverTrouble(name string) trouble {
	switch name {
	case "AuthenticationError":
		return credentials
	case "AuthorizationError", "TopicNotFound", "TopicTerminatedError", "ProducerBlockedQuotaExceededError",
		"ProducerBlockedQuotaExceededException", "ProducerFenced", "IncompatibleSchema", "InvalidTopicName",
		"NotAllowedError", "UnsupportedVersionError", "MetadataError":
		return refused
	}
	return unreachable // ProducerBusy among them: a connection that died holds the name for a while
}

// serverError finds the name of a ServerError, and its message, in an error's text.
func serverError(text string) (name, message string) {
	if _, after, ok := strings.Cut(text, "server error: "); ok {
		name, message, _ = strings.Cut(after, ": ")
		return name, firstLine(message)
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r < 'A' || r > 'z' || r > 'Z' && r < 'a' }) {
		if serverTrouble(word) != unreachable {
			return word, ""
		}
	}
	return "", ""
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(line)
}

// withoutCode takes off the client's own code, which it puts behind its sentence.
func withoutCode(s string) string {
	sentence, code, ok := cutLast(s, ": ")
	isLetter := func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' }
	if !ok || code == "" || code[0] < 'A' || code[0] > 'Z' || strings.IndexFunc(code, func(r rune) bool { return !isLetter(r) }) >= 0 {
		return s
	}
	return sentence
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// plainWords says for people what an error of the client means. hint is what its log
// told about the connection, which is more than the error does.
func plainWords(err error, hint string) string {
	if errors.Is(err, pulsar.ErrMessageTooLarge) || errors.Is(err, pulsar.ErrMetaTooLarge) ||
		strings.Contains(err.Error(), "exceeds MaxMessageSize") {
		return "larger than the cloud takes"
	}
	name, message := serverError(err.Error())
	text := wordsOf(name)
	switch {
	case text != "" && message != "":
		return fmt.Sprintf("%s (%s)", text, message)
	case text != "":
		return text
	case hint != "":
		return "the cloud cannot be reached: " + hint
	}
	return "the cloud cannot be reached: " + withoutCode(firstLine(err.Error()))
}

// wordsOf says what a ServerError of the protocol means here, "" if nothing known.
func wordsOf(name string) string {
	return map[string]string{
		"AuthenticationError":                   "the cloud does not accept the credentials",
		"AuthorizationError":                    "the cloud does not allow producing to this topic",
		"TopicNotFound":                         "the cloud has no such topic and does not create it",
		"TopicTerminatedError":                  "the cloud topic is terminated",
		"ProducerBlockedQuotaExceededError":     "the cloud topic is over its backlog quota",
		"ProducerBlockedQuotaExceededException": "the cloud topic is over its backlog quota",
		"ProducerFenced":                        "another producer has taken the cloud topic for itself",
		"IncompatibleSchema":                    "the cloud topic has another schema",
		"InvalidTopicName":                      "the cloud does not accept the topic's name",
		"NotAllowedError":                       "the cloud does not allow it",
		"MetadataError":                         "the cloud has no such namespace, or cannot read what it knows of it",
		"ProducerBusy":                          "an earlier connection still holds the producer's name",
		"ServiceNotReady":                       "the cloud is not ready",
	}[name]
}
