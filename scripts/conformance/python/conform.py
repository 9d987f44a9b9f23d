"""Checks a broker with the official Python client, whose core is the C++ client.

    python conform.py pulsar://HOST:PORT http://HOST:PORT [PART-OF-A-NAME]

With a part of a name only the checks with it in their names run. Each check has topics of its own, prints one line
and is given LIMIT seconds. The first that fails ends the program with exit code 1, after a line that says what was
expected and what was seen. The client's own log goes to the file named by CONFORM_LOG, else nowhere.
"""
import concurrent.futures
import json
import os
import sys
import threading
import time
import urllib.request

import babel
import deeper
import policies
import pulsar
import schemas
import topics
from pulsar import CompressionType, ConsumerType, InitialPosition, MessageId

LIMIT = 40
RUN = f"py-{int(time.time() * 1000):x}-{os.getpid()}"
CHECKS = []
COMPRESSIONS = {
    "none": CompressionType.NONE,
    "lz4": CompressionType.LZ4,
    "zlib": CompressionType.ZLib,
    "zstd": CompressionType.ZSTD,
    "snappy": CompressionType.SNAPPY,
}


class Unexpected(Exception):
    pass


def check(name):
    def add(body):
        CHECKS.append((name, body))
        return body

    return add


def same(what, want, got):
    if want != got:
        raise Unexpected(f"{what}: expected {want!r}, saw {got!r}")


def refused(what, call, *errors):
    try:
        call()
    except errors:
        return
    except Exception as e:
        raise Unexpected(f"{what}: expected {' or '.join(e.__name__ for e in errors)}, saw {type(e).__name__}: {e}")
    raise Unexpected(f"{what}: expected a refusal, saw success")


class Broker:
    """One broker under test, with the few things that every check does with it."""

    def __init__(self, url, admin):
        self.url, self.admin = url, admin.rstrip("/")
        self.client = self.connect()

    def connect(self):
        log = pulsar.FileLogger(pulsar.LoggerLevel.Info, os.environ.get("CONFORM_LOG", os.devnull))
        return pulsar.Client(self.url, operation_timeout_seconds=15, logger=log)

    def subscribe(self, topic, name="sub", kind=ConsumerType.Exclusive, **more):
        more.setdefault("initial_position", InitialPosition.Earliest)
        return self.client.subscribe(topic, name, consumer_type=kind, **more)

    def publish(self, topic, texts, **more):
        producer = self.client.create_producer(topic)
        ids = [producer.send(t.encode(), **more) for t in texts]
        producer.close()
        return ids

    def publish_batches(self, topic, texts, size, send=lambda i: {}, **more):
        """Sends the texts in batches of the given size and returns their ids in order."""
        ids, refusals = [], []
        producer = self.client.create_producer(
            topic, batching_enabled=True, batching_max_messages=size, batching_max_publish_delay_ms=5000, **more)

        def receipt(result, message_id):
            (ids if result == pulsar.Result.Ok else refusals).append(message_id or result)

        for i, text in enumerate(texts):
            producer.send_async(text.encode(), receipt, **send(i))
        producer.flush()
        producer.close()
        same("refused sends", [], refusals)
        return ids

    def stats(self, topic):
        with urllib.request.urlopen(f"{self.admin}/admin/v2/persistent/public/default/{topic}/stats", timeout=10) as answer:
            return json.load(answer)

    def backlog(self, topic, name="sub"):
        return self.stats(topic)["subscriptions"][name]["msgBacklog"]

    def settles(self, what, want, read, seconds=10):
        """Waits for a figure that the broker brings up to date on its own time."""
        end = time.monotonic() + seconds
        while (got := read()) != want and time.monotonic() < end:
            time.sleep(0.1)
        same(what, want, got)


def take(consumer, count, ack=True):
    """Receives count messages; names how many came when they stop coming."""
    out = []
    for _ in range(count):
        try:
            message = consumer.receive(30_000)
        except pulsar.Timeout:
            raise Unexpected(f"expected {count} messages, saw {len(out)}, the last: {out[-1].data()[:40] if out else None}")
        if ack:
            consumer.acknowledge(message)
        out.append(message)
    return out


def drain(consumer, ack=True):
    """Receives until nothing has come for half a second."""
    out = []
    while True:
        try:
            out.append(consumer.receive(500))
        except pulsar.Timeout:
            return texts(out)
        if ack:
            consumer.acknowledge(out[-1])


def nothing_more(consumer, millis=300):
    try:
        message = consumer.receive(millis)
    except pulsar.Timeout:
        return
    raise Unexpected(f"expected no further message, saw {message.data()[:40]!r}")


def texts(messages):
    return [m.data().decode() for m in messages]


def numbered(prefix, count):
    return [f"{prefix}-{i}" for i in range(count)]


@check("publish, receive, acknowledge, with key, properties and event time")
def plain(b, topic):
    consumer = b.subscribe(topic)
    producer = b.client.create_producer(topic, producer_name=f"{topic}-producer")
    producer.send(b"first", properties={"unit": "°C", "empty": ""}, partition_key="k1", event_timestamp=1_700_000_000_123)
    producer.send(b"")
    first, second = take(consumer, 2)
    same("payload", b"first", first.data())
    same("properties", {"unit": "°C", "empty": ""}, first.properties())
    same("key", "k1", first.partition_key())
    same("event time", 1_700_000_000_123, first.event_timestamp())
    same("producer name", f"{topic}-producer", first.producer_name())
    same("publish time is near", True, abs(first.publish_timestamp() / 1000 - time.time()) < 60)
    same("redelivery count", 0, first.redelivery_count())
    same("empty payload", b"", second.data())
    same("ids rise", True, first.message_id() < second.message_id())
    b.settles("backlog after acknowledging all", 0, lambda: b.backlog(topic))
    consumer.close()
    nothing_more(b.subscribe(topic))


@check("batches keep order, keys and properties")
def batches(b, topic):
    consumer = b.subscribe(topic)
    ids = b.publish_batches(topic, numbered("m", 100), 25,
                            lambda i: {"partition_key": f"k{i % 3}", "properties": {"n": str(i)}})
    same("entries of 100 messages in batches of 25", 4, len({(i.ledger_id(), i.entry_id()) for i in ids}))
    got = take(consumer, 100)
    same("texts", numbered("m", 100), texts(got))
    same("keys", [f"k{i % 3}" for i in range(100)], [m.partition_key() for m in got])
    same("properties", [str(i) for i in range(100)], [m.properties()["n"] for m in got])
    b.settles("backlog after acknowledging all", 0, lambda: b.backlog(topic))


@check("part of a batch acknowledged: the rest comes again, by batch index")
def batch_parts(b, topic):
    consumer = b.subscribe(topic, kind=ConsumerType.Shared, batch_index_ack_enabled=True)
    b.publish_batches(topic, numbered("m", 10), 10)
    for m in take(consumer, 10, ack=False):
        if int(m.data().decode()[2:]) % 2:
            consumer.acknowledge(m)
    consumer.close()
    again = b.subscribe(topic, kind=ConsumerType.Shared, batch_index_ack_enabled=True)
    same("came again", [f"m-{i}" for i in range(0, 10, 2)], texts(take(again, 5)))
    nothing_more(again)


@check("every compression, single and in batches")
def compression(b, topic):
    text = "temperature 21.5 °C; " * 50
    for name, kind in COMPRESSIONS.items():
        own = f"{topic}-{name}"
        consumer = b.subscribe(own)
        producer = b.client.create_producer(own, compression_type=kind)
        producer.send(text.encode())
        producer.close()
        b.publish_batches(own, [text] * 20, 10, compression_type=kind)
        same(f"texts with {name}", [text] * 21, texts(take(consumer, 21)))


@check("large messages pass, too large ones are refused by the client")
def large(b, topic):
    consumer = b.subscribe(topic)
    payload = os.urandom(1_000_000)
    producer = b.client.create_producer(topic)
    producer.send(payload)
    refused("6 MB", lambda: producer.send(bytes(6_000_000)), pulsar.MessageTooBig)
    producer.send(b"after")
    first, second = take(consumer, 2)
    same("large payload arrives unchanged", True, first.data() == payload)
    same("next message", b"after", second.data())


@check("cumulative acknowledgement")
def cumulative(b, topic):
    consumer = b.subscribe(topic)
    b.publish(topic, numbered("m", 10))
    consumer.acknowledge_cumulative(take(consumer, 10, ack=False)[6])
    b.settles("backlog", 3, lambda: b.backlog(topic))
    consumer.close()
    same("came again", ["m-7", "m-8", "m-9"], texts(take(b.subscribe(topic), 3)))


@check("a negative acknowledgement brings redelivery with its count")
def nack(b, topic):
    consumer = b.subscribe(topic, kind=ConsumerType.Shared, negative_ack_redelivery_delay_ms=200)
    b.publish(topic, numbered("m", 3))
    for m in take(consumer, 3, ack=False):
        consumer.negative_acknowledge(m) if m.data() == b"m-1" else consumer.acknowledge(m)
    for count in 1, 2:
        again = take(consumer, 1, ack=False)[0]
        same("redelivered", b"m-1", again.data())
        same("redelivery count", count, again.redelivery_count())
        consumer.negative_acknowledge(again) if count == 1 else consumer.acknowledge(again)
    nothing_more(consumer, 600)
    b.settles("backlog", 0, lambda: b.backlog(topic))


@check("redeliver unacknowledged messages, exclusive: from the oldest, in order")
def redeliver(b, topic):
    consumer = b.subscribe(topic)
    b.publish(topic, numbered("m", 5))
    consumer.acknowledge(take(consumer, 5, ack=False)[0])
    consumer.redeliver_unacknowledged_messages()
    same("came again", [f"m-{i}" for i in range(1, 5)], texts(take(consumer, 4)))


@check("messages too often redelivered go to the dead letter topic")
def dead_letters(b, topic):
    policy = pulsar.ConsumerDeadLetterPolicy(max_redeliver_count=2, dead_letter_topic=f"{topic}-dead")
    letters = b.subscribe(f"{topic}-dead")
    consumer = b.subscribe(topic, kind=ConsumerType.Shared, negative_ack_redelivery_delay_ms=100, dead_letter_policy=policy)
    b.publish(topic, ["poison"])
    for _ in range(3):
        consumer.negative_acknowledge(take(consumer, 1, ack=False)[0])
    nothing_more(consumer, 1000)
    same("dead letter", ["poison"], texts(take(letters, 1)))


@check("a reader reads to the end, and from an id, inclusive or not")
def reader(b, topic):
    ids = b.publish(topic, numbered("m", 10))
    b.publish_batches(topic, [f"m-{i}" for i in range(10, 20)], 10)

    def read(start, **more):
        r, out = b.client.create_reader(topic, start, **more), []
        while r.has_message_available():
            out.append(r.read_next(10_000).data().decode())
        r.close()
        return out

    same("from the earliest", numbered("m", 20), read(MessageId.earliest))
    same("after the fifth", numbered("m", 20)[5:], read(ids[4]))
    same("from the fifth", numbered("m", 20)[4:], read(ids[4], start_message_id_inclusive=True))
    latest = b.client.create_reader(topic, MessageId.latest)
    same("at the latest, something there", False, latest.has_message_available())
    b.publish(topic, ["new"])
    same("at the latest, new message", b"new", latest.read_next(10_000).data())
    latest.close()
    same("subscriptions left", {}, b.stats(topic)["subscriptions"])


@check("seek to the earliest, the latest, an id and a time")
def seek(b, topic):
    consumer = b.subscribe(topic)
    ids = b.publish(topic, numbered("old", 5))
    take(consumer, 5)
    time.sleep(0.05)
    now = int(time.time() * 1000)
    time.sleep(0.05)
    b.publish(topic, numbered("new", 5))
    every = numbered("old", 5) + numbered("new", 5)
    for what, place, want in [("earliest", MessageId.earliest, every), ("third id", ids[2], every[3:]), ("time", now, every[5:])]:
        consumer.seek(place)
        same(f"after seeking to the {what}", want, texts(take(consumer, len(want))))
    consumer.seek(MessageId.latest)
    nothing_more(consumer)
    b.publish(topic, ["last"])
    same("after seeking to the latest", ["last"], texts(take(consumer, 1)))


@check("Exclusive: a second consumer is refused, until the first leaves")
def exclusive(b, topic):
    first = b.subscribe(topic)
    other = b.connect()
    refused("second consumer", lambda: other.subscribe(topic, "sub"), pulsar.ConsumerBusy)
    first.close()
    other.subscribe(topic, "sub")
    other.close()


@check("Shared: each message to one consumer, what one leaves goes to the other")
def shared(b, topic):
    one = b.subscribe(topic, kind=ConsumerType.Shared, receiver_queue_size=10)
    two = b.subscribe(topic, kind=ConsumerType.Shared, receiver_queue_size=10)
    b.publish(topic, numbered("m", 20))
    left, kept = drain(one, ack=False), drain(two)
    same("together", sorted(numbered("m", 20)), sorted(left + kept))
    same("both have work", True, len(left) > 0 and len(kept) > 0)
    one.close()
    same("what the first left", sorted(left), sorted(texts(take(two, len(left)))))


@check("Failover: one consumer has all, the other takes over in order")
def failover(b, topic):
    one, two = (b.subscribe(topic, kind=ConsumerType.Failover, consumer_name=n) for n in "ab")
    time.sleep(1.2)  # which of them is active is the broker's choice, and it may take a second over it
    b.publish(topic, numbered("m", 10))
    got = drain(one, ack=False), drain(two, ack=False)
    same("messages of the active and the other", [10, 0], sorted(map(len, got), reverse=True))
    active, standby = (one, two) if got[0] else (two, one)
    active.close()
    same("taken over", numbered("m", 10), texts(take(standby, 10)))


@check("Key_Shared: a key stays with one consumer, in order")
def key_shared(b, topic):
    consumers = [b.subscribe(topic, kind=ConsumerType.KeyShared, consumer_name=f"c{i}") for i in range(3)]
    producer = b.client.create_producer(topic)
    for i in range(90):
        producer.send(f"{i}".encode(), partition_key=f"key-{i % 30}")
    owner, last, got = {}, {}, 0
    for c, consumer in enumerate(consumers):
        while True:
            try:
                m = consumer.receive(500)
            except pulsar.Timeout:
                break
            consumer.acknowledge(m)
            key, number = m.partition_key(), int(m.data())
            same(f"consumer of {key}", owner.setdefault(key, c), c)
            same(f"order within {key}", True, last.get(key, -1) < number)
            last[key], got = number, got + 1
    same("messages", 90, got)
    same("consumers with work", 3, len(set(owner.values())))


@check("initial position latest, and unsubscribe")
def positions(b, topic):
    b.publish(topic, ["before"])
    consumer = b.subscribe(topic, initial_position=InitialPosition.Latest)
    b.publish(topic, ["after"])
    same("from the latest", ["after"], texts(take(consumer, 1)))
    consumer.unsubscribe()
    same("subscriptions left", {}, b.stats(topic)["subscriptions"])


@check("two producers of one name: the second is refused")
def producer_names(b, topic):
    b.client.create_producer(topic, producer_name="meter")
    other = b.connect()
    refused("second producer", lambda: other.create_producer(topic, producer_name="meter"), pulsar.ProducerBusy)
    other.close()


@check("after the topic was unloaded, producer and consumer go on")
def unload(b, topic):
    consumer = b.subscribe(topic)
    producer = b.client.create_producer(topic)
    producer.send(b"before")
    take(consumer, 1)
    b.settles("backlog", 0, lambda: b.backlog(topic))
    call = urllib.request.Request(f"{b.admin}/admin/v2/persistent/public/default/{topic}/unload", method="PUT")
    with urllib.request.urlopen(call, timeout=10) as answer:
        same("status of unload", 204, answer.status)
    producer.send(b"after")
    same("came after", ["after"], texts(take(consumer, 1)))


topics.add(check, sys.modules[__name__])
schemas.add(check, sys.modules[__name__])
babel.add(check, sys.modules[__name__])
BESIDE = []
deeper.add(lambda name: lambda body: BESIDE.append((name, body)), sys.modules[__name__])
policies.add(lambda name: lambda body: BESIDE.append((name, body)), sys.modules[__name__])


def run(broker, name, body):
    late = threading.Timer(LIMIT, lambda: (print(f"FAIL python: {name}: expected an end within {LIMIT} s, saw none", flush=True), os._exit(1)))
    late.daemon = True
    late.start()
    begin = time.monotonic()
    try:
        body(broker, f"{RUN}-{body.__name__.replace('_', '-')}")
    except Exception as e:
        print(f"FAIL python: {name}: {e if isinstance(e, Unexpected) else f'{type(e).__name__}: {e}'}", flush=True)
        os._exit(1)
    late.cancel()
    print(f"ok python: {name} ({time.monotonic() - begin:.1f} s)", flush=True)


def main(url, admin, part=""):
    """Runs one check after the other, and beside them those of BESIDE, which mostly wait, a few at a time."""
    broker, other = Broker(url, admin), Broker(url, admin)
    chosen, beside = ([(name, body) for name, body in some if part in name] for some in (CHECKS, BESIDE))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for name, body in beside:
            pool.submit(run, other, name, body)
        for name, body in chosen:
            run(broker, name, body)
    broker.client.close()
    other.client.close()
    print(f"python: {len(chosen) + len(beside)} passed, 0 failed")


if __name__ == "__main__":
    main(*sys.argv[1:])
