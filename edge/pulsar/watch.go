package pulsar

// WATCH_TOPIC_LIST, WATCH_TOPIC_LIST_CLOSE (protocol version 20 on).
//
// CONNECTED does not offer topic watchers, so clients poll with GET_TOPICS_OF_NAMESPACE.
// One that asks all the same gets ERROR NotAllowedError; closing a watcher, which cannot
// exist, succeeds.
//
// Deviations: no watchers.

import (
	"wayside/wire/pulsarpb"
)

func (s *session) refuseWatch(c *pulsarpb.BaseCommand) error {
	s.refuseRequest(c.GetWatchTopicList().GetRequestId(), pulsarpb.ServerError_NotAllowedError, "Unable to create topic list watcher: it is not enabled")
	return nil
}

func (s *session) handleCloseWatch(c *pulsarpb.BaseCommand) error {
	s.succeed(c.GetWatchTopicListClose().GetRequestId())
	return nil
}
