"""What the C++ client does with topics as a whole: kinds of them, lists, partitions, ends."""
import re
import time
import urllib.error
import urllib.request

import pulsar
from pulsar import ConsumerType, InitialPosition, MessageId, RegexSubscriptionMode


def ask(b, method, path, body=None):
    """The status that the admin interface answers."""
    call = urllib.request.Request(b.admin + path, method=method, data=None if body is None else body.encode(),
                                  headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(call, timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as e:
        return e.code


def add(check, h):
    """Adds the checks; h are the functions of conform.py that they share."""
    same, refused, take, texts, nothing_more, numbered = h.same, h.refused, h.take, h.texts, h.nothing_more, h.numbered

    def done(b, method, rest, body=None, domain="persistent"):
        path = f"/admin/v2/{domain}/public/default/{rest}"
        same(f"{method} {path}", 204, ask(b, method, path, body))

    @check("a client with an http:// service URL looks up, lists and reads")
    def over_http(b, topic):
        done(b, "PUT", topic + "-p/partitions", "3")
        client = pulsar.Client(b.admin, operation_timeout_seconds=15, logger=pulsar.FileLogger(pulsar.LoggerLevel.Info, "/dev/null"))
        same("partitions", 3, len(client.get_topic_partitions(topic + "-p")))
        same("partitions of a missing topic", 1, len(client.get_topic_partitions(topic + "-none")))
        for name in topic, topic + "-p":
            consumer = client.subscribe(name, "sub")
            producer = client.create_producer(name)
            for t in numbered("m", 6):
                producer.send(t.encode())
            same("texts of " + name, sorted(numbered("m", 6)), sorted(texts(take(consumer, 6))))
        pattern = client.subscribe(re.compile(f"persistent://public/default/{topic}.*"), "all", initial_position=InitialPosition.Earliest)
        take(pattern, 12)
        client.close()

    @check("a pattern finds topics with and without partitions")
    def pattern(b, topic):
        # pattern_auto_discovery_period is not handed on by this client: topics that come later take a minute.
        done(b, "PUT", topic + "-c/partitions", "2")
        for part in "-b", "-c", "-d", "":
            b.publish(topic + part, [part])
        consumer = b.client.subscribe(re.compile(f"public/default/{topic}-.*"), "sub", initial_position=InitialPosition.Earliest)
        same("what came", ["-b", "-c", "-d"], sorted(texts(take(consumer, 3))))
        nothing_more(consumer)

    @check("a pattern for non-persistent topics")
    def pattern_of_fleeting(b, topic):
        producer = b.client.create_producer(f"non-persistent://public/default/{topic}-a")
        b.publish(topic + "-b", ["stored"])
        consumer = b.client.subscribe(re.compile(f"non-persistent://public/default/{topic}-.*"), "sub",
                                      regex_subscription_mode=RegexSubscriptionMode.NonPersistentOnly)
        producer.send(b"fleeting")
        same("what came", ["fleeting"], texts(take(consumer, 1)))
        nothing_more(consumer)

    @check("a non-persistent topic gives what it can at once")
    def fleeting(b, topic):
        name = f"non-persistent://public/default/{topic}"
        producer = b.client.create_producer(name)
        producer.send(b"nobody")
        one = b.subscribe(name)
        other = b.subscribe(name, "other", ConsumerType.Shared)
        for t in numbered("m", 100):
            producer.send(t.encode())
        same("one subscription", numbered("m", 100), texts(take(one, 100)))
        same("the other", numbered("m", 100), texts(take(other, 100, ack=False)))
        other.redeliver_unacknowledged_messages()
        nothing_more(other)
        one.seek(MessageId.earliest)
        nothing_more(one)
        producer.send(b"last")
        same("behind a seek", ["last"], texts(take(one, 1)))
        same("statistics", 200, ask(b, "GET", f"/admin/v2/non-persistent/public/default/{topic}/stats"))

    @check("partitions are added, listed and deleted")
    def partitions(b, topic):
        done(b, "PUT", topic + "/partitions", "2")
        done(b, "POST", topic + "/partitions", "5")
        same("partitions", 5, len(b.client.get_topic_partitions(topic)))
        consumer = b.subscribe(topic)
        producer = b.client.create_producer(topic, message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution)
        for t in numbered("m", 10):
            producer.send(t.encode())
        same("partitions that carry", 5, len({m.topic_name() for m in take(consumer, 10)}))
        same("fewer", 422, ask(b, "POST", f"/admin/v2/persistent/public/default/{topic}/partitions", "4"))
        same("in use", 412, ask(b, "DELETE", f"/admin/v2/persistent/public/default/{topic}/partitions"))
        producer.close()
        consumer.close()
        done(b, "DELETE", topic + "/partitions")

    @check("a terminated topic: no more is taken, the rest is read")
    def terminated(b, topic):
        own = type(b)(b.url, b.admin)  # told of the end by a real Pulsar, this client hangs up and comes back for ever
        consumer = own.subscribe(topic)
        producer = own.client.create_producer(topic)
        producer.send(b"last")
        same("terminate", 200, ask(b, "POST", f"/admin/v2/persistent/public/default/{topic}/terminate", ""))
        refused("a further message", lambda: producer.send(b"more"), pulsar.PulsarException)
        refused("a further producer", lambda: own.client.create_producer(topic), pulsar.TopicTerminated)
        same("what was there", ["last"], texts(take(consumer, 1)))
        own.client.close()

    @check("a topic deleted by force comes back empty")
    def deleted(b, topic):
        consumer = b.subscribe(topic)
        b.publish(topic, ["old"])
        take(consumer, 1, ack=False)
        same("in use", 412, ask(b, "DELETE", f"/admin/v2/persistent/public/default/{topic}"))
        done(b, "DELETE", topic + "?force=true")
        time.sleep(0.2)
        b.publish(topic, ["new"])
        same("then", ["new"], texts(take(consumer, 1)))

    @check("names of any characters")
    def names(b, topic):
        for odd in "a b", "100%", "ü-ß-漢", "q?x=1&y", "#h;c", "a+b", "..", "%2F", "x-partition-y":
            name = f"persistent://public/default/{topic}{odd}"
            consumer = b.subscribe(name)
            b.publish(name, [odd])
            same("by the name " + odd, [odd], texts(take(consumer, 1)))
            consumer.close()

    @check("a quota of the namespace holds producers back until it is acknowledged")
    def quota(b, topic):
        namespace = f"public/{topic}"
        same("namespace", 204, ask(b, "PUT", f"/admin/v2/namespaces/{namespace}"))
        same("quota", 204, ask(b, "POST", f"/admin/v2/namespaces/{namespace}/backlogQuota", '{"limitSize":10240,"policy":"producer_exception"}'))
        name = f"persistent://{namespace}/t"
        consumer = b.subscribe(name)
        producer = b.client.create_producer(name)
        producer.send(b"x" * 20_000)
        refused("a producer", lambda: b.client.create_producer(name), pulsar.ProducerBlockedQuotaExceededException)
        take(consumer, 1)
        time.sleep(0.5)
        b.client.create_producer(name).send(b"more")
        same("most producers", 204, ask(b, "POST", f"/admin/v2/namespaces/{namespace}/maxProducersPerTopic", "2"))
        time.sleep(0.5)  # a real Pulsar hears of its own policies a little later
        refused("a third producer", lambda: b.client.create_producer(name), pulsar.ProducerBusy)
