package pulsar

// WATCH_TOPIC_LIST, WATCH_TOPIC_UPDATE, WATCH_TOPIC_LIST_CLOSE (protocol version 20 on).
//
// A watcher is told by SUCCESS which persistent topics of a namespace match its pattern,
// as GET_TOPICS_OF_NAMESPACE lists and hashes them, and from then on by UPDATE which come
// and go. The list is empty when the request has its hash. The same id again is a new
// watcher in the old one's place; a namespace that does not exist has no topics; closing
// what is not there succeeds.
//
// Deviations: changes that come faster than they are told are merged into one UPDATE, and
// it may follow the answer to what caused them. One that missed some, being slow, is told
// all names as new, and polls for those that went. A pattern that Go's regular
// expressions cannot say is NotAllowedError, upon which clients poll.

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"wayside/edge"
	"wayside/wire/pulsarpb"
)

// maxWatchers is how many watchers one connection may have, and allWatchers how many all
// together: each costs a goroutine, and a client has one for each pattern. Clients that
// get none poll.
const (
	maxWatchers = 100
	allWatchers = 1_000
)

// watch is one watcher of a client.
type watch struct {
	s       *session
	id      uint64
	pattern *regexp.Regexp
	follow  *edge.Follower
	cancel  context.CancelFunc
}

func (s *session) handleWatch(c *pulsarpb.BaseCommand) error {
	m := c.GetWatchTopicList()
	pattern, err := s.watchable(m)
	if err != nil {
		s.failRequest(m.GetRequestId(), err)
		return nil
	}
	// One list at a time, as there.
	if err := s.wait(func() error { return s.srv.listing.take(s.ctx) }); err != nil {
		return err
	}
	defer s.srv.listing.give()
	all, follow := s.srv.broker.Follow(m.GetNamespace())
	names := listTopics(all, pulsarpb.CommandGetTopicsOfNamespace_PERSISTENT, pattern)
	hash := topicsHash(fullNames(names))
	if m.GetTopicsHash() == hash {
		names = nil
	}
	memory, err := s.takeList(names)
	if err != nil {
		follow.Stop()
		return s.unlisted(m.GetRequestId(), err)
	}
	s.out.replyLarge(&pulsarpb.CommandWatchTopicListSuccess{
		RequestId: m.RequestId, WatcherId: m.WatcherId, Topic: slices.Collect(fullNames(names)), TopicsHash: &hash,
	}, memory)
	s.startWatch(&watch{s: s, id: m.GetWatcherId(), pattern: pattern, follow: follow})
	return nil
}

// watchable checks a request in itself.
func (s *session) watchable(m *pulsarpb.CommandWatchTopicList) (*regexp.Regexp, error) {
	const unable = "Unable to create topic list watcher"
	if err := checkNamespace(m.GetNamespace()); err != nil {
		return nil, err
	}
	text := withoutScheme(m.GetTopicsPattern()) // which counts only in GET_TOPICS_OF_NAMESPACE (watched on 4.0.7)
	if utf8.RuneCountInString(text) > maxPattern {
		return nil, fmt.Errorf("%w: %s: Pattern longer than maximum: %d", edge.ErrNotAllowed, unable, maxPattern)
	}
	pattern, err := wholeName(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: this broker cannot watch that pattern", edge.ErrNotAllowed, unable)
	}
	if _, again := s.watches[m.GetWatcherId()]; !again && len(s.watches) >= maxWatchers {
		return nil, fmt.Errorf("%w: %s: one connection may have %d", edge.ErrLimit, unable, maxWatchers)
	}
	if s.srv.watching.Load() >= allWatchers {
		return nil, fmt.Errorf("%w: %s: there are %d", edge.ErrLimit, unable, allWatchers)
	}
	return pattern, nil
}

// startWatch puts a watcher in its place and lets it tell what changes.
func (s *session) startWatch(w *watch) {
	s.stopWatch(w.id)
	if s.watches == nil {
		s.watches = map[uint64]*watch{}
	}
	s.watches[w.id] = w
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(s.ctx)
	s.srv.watching.Add(1)
	s.requests.Go(func() {
		defer s.guard()
		defer s.srv.watching.Add(-1)
		defer w.follow.Stop()
		for w.await(ctx) {
			w.tell(ctx)
		}
	})
}

func (s *session) stopWatch(id uint64) {
	if w := s.watches[id]; w != nil {
		w.cancel()
		delete(s.watches, id)
	}
}

func (s *session) handleCloseWatch(c *pulsarpb.BaseCommand) error {
	m := c.GetWatchTopicListClose()
	s.stopWatch(m.GetWatcherId())
	s.succeed(m.GetRequestId())
	return nil
}

// lag is how often a watcher looks whether its client has taken what it was told.
const lag = 100 * time.Millisecond

// await returns when there is something to tell, and the client takes it; false when
// the watcher has ended.
func (w *watch) await(ctx context.Context) bool {
	select {
	case <-w.follow.Wake():
	case <-ctx.Done():
		return false
	}
	for w.s.slots.weight.Load() > heavy {
		timer := time.NewTimer(lag)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
	return ctx.Err() == nil
}

// tell sends one UPDATE with all that has changed.
func (w *watch) tell(ctx context.Context) {
	if w.s.srv.listing.take(ctx) != nil {
		return // the watcher has ended
	}
	defer w.s.srv.listing.give()
	changes, all, missed := w.follow.Changes()
	came, went := w.net(changes)
	if len(came)+len(went) == 0 && !missed {
		return
	}
	names := listTopics(all, pulsarpb.CommandGetTopicsOfNamespace_PERSISTENT, w.pattern)
	hash := topicsHash(fullNames(names))
	if missed {
		came, went = names, nil
	}
	most := w.s.srv.opts.MaxMessageSize
	for len(came)+len(went) > 0 {
		var nowCame, nowWent []edge.TopicName
		nowCame, came = cutList(came, most/2)
		nowWent, went = cutList(went, most/2)
		memory, err := w.s.srv.broker.Budget().Take(ctx, edge.ShareRead, int64(2*(listBytes(nowCame)+listBytes(nowWent))))
		if err != nil {
			return // as above
		}
		w.s.out.pushLarge(&pulsarpb.CommandWatchTopicUpdate{
			WatcherId: &w.id, NewTopics: slices.Collect(fullNames(nowCame)),
			DeletedTopics: slices.Collect(fullNames(nowWent)), TopicsHash: proto.String(hash),
		}, memory)
	}
}

// net are the topics among the changes that match, each by the last thing that it did.
func (w *watch) net(changes []edge.Change) (came, went []edge.TopicName) {
	last := make(map[edge.TopicName]bool, len(changes))
	for _, c := range changes {
		last[c.Name] = c.Exists
	}
	for name, exists := range last {
		if exists {
			came = append(came, name)
		} else {
			went = append(went, name)
		}
	}
	const mode = pulsarpb.CommandGetTopicsOfNamespace_PERSISTENT
	came, went = listTopics(came, mode, w.pattern), listTopics(went, mode, w.pattern)
	for _, list := range [][]edge.TopicName{came, went} {
		sort.Slice(list, func(i, j int) bool { return list[i].String() < list[j].String() })
	}
	return came, went
}

// cutList cuts off the names that take at most so many bytes in a frame, one at least.
func cutList(names []edge.TopicName, most int) (head, rest []edge.TopicName) {
	size := 0
	for i := range names {
		size += listBytes(names[i : i+1])
		if size > most && i > 0 {
			return names[:i], names[i:]
		}
	}
	return names, nil
}
