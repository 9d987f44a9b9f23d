"""What the C++ client does with subscriptions, readers and producers beyond the plain cases."""
import contextlib
import os
import subprocess
import tempfile
import time

import pulsar
from pulsar import ConsumerKeySharedPolicy, ConsumerType, KeySharedMode, MessageId, ProducerAccessMode
from topics import ask


def add(check, h):
    """Adds the checks; h are the functions of conform.py that they share."""
    same, refused, take, texts, nothing_more, numbered, drain = h.same, h.refused, h.take, h.texts, h.nothing_more, h.numbered, h.drain

    def done(b, method, rest, body=None):
        path = f"/admin/v2/persistent/public/default/{rest}"
        same(f"{method} {path}", 204, ask(b, method, path, body))

    def namespace(b, name, **policies):
        same("namespace", 204, ask(b, "PUT", f"/admin/v2/namespaces/public/{name}"))
        for policy, body in policies.items():
            same(policy, 204, ask(b, "POST", f"/admin/v2/namespaces/public/{name}/{policy}", body))
        return f"persistent://public/{name}/t"

    def rest(reader):
        out = []
        while reader.has_message_available():
            out.append(reader.read_next(10_000).data().decode())
        return out

    @check("a batch acknowledged cumulatively to its middle")
    def middle_acknowledged(b, topic):
        consumer = b.subscribe(topic, batch_index_ack_enabled=True)
        b.publish_batches(topic, numbered("m", 20), 10)
        consumer.acknowledge_cumulative(take(consumer, 20, ack=False)[13])
        consumer.close()
        again = b.subscribe(topic, batch_index_ack_enabled=True)
        same("came again", numbered("m", 20)[14:], texts(take(again, 6)))
        nothing_more(again)
        b.settles("backlog", 0, lambda: b.backlog(topic))

    @check("seek and start in the middle of a batch, inclusive or not")
    def middle_sought(b, topic):
        consumer = b.subscribe(topic)
        inclusive = b.subscribe(topic, "other", start_message_id_inclusive=True)
        ids = b.publish_batches(topic, numbered("m", 20), 10)
        for i in 4, 9, 13:
            consumer.seek(ids[i])
            same(f"sought {i}", numbered("m", 20)[i + 1:], texts(take(consumer, 19 - i)))
            inclusive.seek(ids[i])
            same(f"sought {i}, inclusive", numbered("m", 20)[i:], texts(take(inclusive, 20 - i)))
            same(f"read from {i}", numbered("m", 20)[i + 1:], rest(b.client.create_reader(topic, ids[i])))
            reader = b.client.create_reader(topic, ids[i], start_message_id_inclusive=True)
            same(f"read from {i}, inclusive", numbered("m", 20)[i:], rest(reader))

    @check("a reader knows whether there is more, and goes on when the topic was unloaded")
    def more(b, topic):
        reader = b.client.create_reader(topic, MessageId.earliest)
        same("on an empty topic", False, reader.has_message_available())
        ids = b.publish_batches(topic, numbered("m", 10), 5)
        same("first ones", numbered("m", 3), [reader.read_next(10_000).data().decode() for _ in range(3)])
        done(b, "PUT", topic + "/unload")
        time.sleep(0.3)  # this client is to notice that it was put out
        b.settles("the reader is connected", True, reader.is_connected)
        same("went on", numbered("m", 10)[3:], [reader.read_next(10_000).data().decode() for _ in range(7)])
        reader.seek(ids[4])
        same("from the last of a batch", numbered("m", 10)[5:], rest(reader))
        reader.seek(MessageId.latest)
        same("from the latest", [], rest(reader))

    @check("a reader on a topic of which everything is trimmed has nothing more, until something comes")
    def trimmed(b, topic):
        consumer = b.subscribe(topic)
        b.publish(topic, numbered("m", 10))
        take(consumer, 10)
        b.settles("backlog", 0, lambda: b.backlog(topic))
        done(b, "PUT", topic + "/unload")  # which closes its ledger
        time.sleep(0.3)
        b.settles("the consumer is connected", True, consumer.is_connected)
        same("trim", 200, ask(b, "POST", f"/admin/v2/persistent/public/default/{topic}/trim"))
        b.settles("stored", 0, lambda: b.stats(topic)["storageSize"])
        reader = b.client.create_reader(topic, MessageId.earliest)
        same("on the trimmed topic", False, reader.has_message_available())
        b.publish(topic, ["after"])
        b.settles("more", True, reader.has_message_available)
        same("read", ["after"], rest(reader))
        same("after it", False, reader.has_message_available())

    @check("a topic is compacted by itself when its backlog is beyond the threshold")
    def compacted_by_threshold(b, topic):
        name = namespace(b, "small-" + topic)
        same("threshold", 204, ask(b, "PUT", f"/admin/v2/namespaces/public/small-{topic}/compactionThreshold", "1000"))
        b.subscribe(name).close()
        producer = b.client.create_producer(name)
        for i in range(60):
            producer.send(f"m-{i:03}".encode() + b"." * 100, partition_key=f"k{i % 3}")
        producer.close()

        def read():
            reader = b.client.create_reader(name, MessageId.earliest, is_read_compacted=True)
            out = [text[:5] for text in rest(reader)]
            reader.close()
            return out

        b.settles("read compacted", ["m-057", "m-058", "m-059"], read, seconds=90)  # a real broker looks once a minute

    @check("a topic is compacted by request, and a table view has the last value of each key")
    def compacted(b, topic):
        b.subscribe(topic).close()
        # Of a compacted batch this client hands out those too, empty, that have gone from it: single ones only. What an
        # empty payload of this client means to a compaction is a matter of dispute, to a table view it means deletion.
        producer = b.client.create_producer(topic)
        for i in range(12):
            producer.send(f"m-{i}".encode(), partition_key=f"k{i % 3}")
        producer.close()
        view = b.client.create_table_view(topic)
        same("values", [b"m-9", b"m-10", b"m-11"], [view.get(f"k{i}") for i in range(3)])
        done(b, "PUT", topic + "/compaction")
        want = ["m-9", "m-10", "m-11"]

        def read():
            reader = b.client.create_reader(topic, MessageId.earliest, is_read_compacted=True)
            out = rest(reader)
            reader.close()
            return out

        b.settles("read compacted", want, read)
        consumer = b.subscribe(topic, "compacted", is_read_compacted=True)
        same("consumed compacted", want, texts(take(consumer, 3)))
        b.publish(topic, ["after"], partition_key="k0")
        same("what came later", ["after"], texts(take(consumer, 1)))
        b.settles("value later", b"after", lambda: view.get("k0"))
        b.publish(topic, [""], partition_key="k1")
        b.settles("value when deleted", None, lambda: view.get("k1"))
        take(b.subscribe(topic), 14)
        view.close()

    @check("Key_Shared sticky: each has its ranges, overlapping ones are refused")
    def sticky(b, topic):
        def ranged(*ranges):
            policy = ConsumerKeySharedPolicy(KeySharedMode.Sticky, False, list(ranges))
            return b.subscribe(topic, kind=ConsumerType.KeyShared, key_shared_policy=policy)

        low, high = ranged((0, 30_000)), ranged((30_001, 65_535))
        refused("a range that overlaps", lambda: ranged((29_000, 31_000)), pulsar.ConsumerAssignError)
        producer = b.client.create_producer(topic)
        parts = []
        for _ in range(2):
            for i in range(30):
                producer.send(f"{i}".encode(), partition_key=f"key-{i}")
            parts.append((drain(low), drain(high)))
        same("the same ones go the same way", parts[0], parts[1])
        same("together", sorted(str(i) for i in range(30)), sorted(parts[0][0] + parts[0][1]))
        same("both have work", True, all(parts[0]))
        high.close()
        producer.send(b"to nobody", partition_key=f"key-{parts[0][1][0]}")
        producer.send(b"to low", partition_key=f"key-{parts[0][0][0]}")
        same("while nobody has the rest", ["to low"], drain(low))

    @check("consumers without a queue have only what they ask for")
    def zero_queue(b, topic):
        idle, busy = (b.subscribe(topic, kind=ConsumerType.Shared, receiver_queue_size=0) for _ in range(2))
        b.publish(topic, numbered("m", 5))
        got = []
        for consumer in (busy,) * 4 + (idle,):
            got.append(consumer.receive())
            consumer.acknowledge(got[-1])
        same("in the order they asked", numbered("m", 5), texts(got))
        b.settles("backlog", 0, lambda: b.backlog(topic))

    @check("messages expired by request")
    def expired(b, topic):
        b.subscribe(topic).close()
        b.publish(topic, numbered("old", 3))
        time.sleep(2.1)
        b.publish(topic, numbered("new", 3))
        done(b, "POST", topic + "/subscription/sub/expireMessages/2")
        b.settles("backlog", 3, lambda: b.backlog(topic))
        same("left", numbered("new", 3), texts(take(b.subscribe(topic), 3)))

    @check("a producer with exclusive access: others are refused, wait, or take over")
    def exclusive_producer(b, topic):
        own = type(b)(b.url, b.admin)  # a real Pulsar hangs up on who goes on with a fenced producer
        first = own.client.create_producer(topic, access_mode=ProducerAccessMode.Exclusive)
        for mode, error in (ProducerAccessMode.Exclusive, pulsar.ProducerFenced), (ProducerAccessMode.Shared, pulsar.ProducerBusy):
            refused(f"another, {mode}", lambda: b.client.create_producer(topic, access_mode=mode), error)
        first.send(b"first")
        fencing = b.client.create_producer(topic, access_mode=ProducerAccessMode.ExclusiveWithFencing)
        fencing.send(b"second")
        refused("the one that was fenced", lambda: first.send(b"late"), pulsar.PulsarException)
        with contextlib.suppress(pulsar.AlreadyClosed):  # of its producer, which may have learned its end by then
            own.client.close()
        fencing.close()
        b.client.create_producer(topic, access_mode=ProducerAccessMode.WaitForExclusive).send(b"third")
        same("what is there", ["first", "second", "third"], texts(take(b.subscribe(topic), 3)))

    @check("deduplication: a sequence id counts once, also for the producer that comes after")
    def repeats(b, topic):
        name = namespace(b, topic, deduplication="true")
        consumer = b.subscribe(name)
        for last in 11, 12:
            producer = b.client.create_producer(name, producer_name="meter")
            same("last sequence id", -1 if last == 11 else 11, producer.last_sequence_id())
            for i in range(10, last + 1):
                producer.send(f"m-{i}".encode(), sequence_id=i)
            producer.close()
        same("stored", ["m-10", "m-11", "m-12"], texts(take(consumer, 3)))
        nothing_more(consumer)

    @check("a message larger than the broker takes arrives in chunks")
    def chunks(b, topic):
        consumer = b.subscribe(topic)
        payload = os.urandom(3_500_000)
        producer = b.client.create_producer(topic, chunking_enabled=True)
        producer.send(b"before")
        producer.send(payload, properties={"unit": "7"}, partition_key="k")
        producer.send(b"after")
        before, large, after = take(consumer, 3)
        same("texts around", ["before", "after"], texts([before, after]))
        same("unchanged", True, large.data() == payload)
        same("key and properties", ("k", {"unit": "7"}), (large.partition_key(), large.properties()))
        b.settles("backlog after acknowledging all", 0, lambda: b.backlog(topic))

    @check("encrypted messages, single, in batches and in chunks, are read by who has the key")
    def encrypted(b, topic):
        with tempfile.TemporaryDirectory() as place:
            secret, public = f"{place}/secret.pem", f"{place}/public.pem"
            for call in ["genrsa", "-out", secret, "2048"], ["rsa", "-in", secret, "-pubout", "-out", public]:
                subprocess.run(["openssl", *call], check=True, capture_output=True)
            keys = pulsar.CryptoKeyReader(public, secret)
            more = {"encryption_key": "k", "crypto_key_reader": keys}
            consumer = b.subscribe(topic, crypto_key_reader=keys)
            b.client.create_producer(topic, compression_type=pulsar.CompressionType.LZ4, **more).send(b"secret")
            # Closed before batches come: given those without the key, this client breaks its memory.
            keyless = b.subscribe(topic, "keyless", crypto_failure_action=pulsar.ConsumerCryptoFailureAction.CONSUME)
            same("readable without the key", False, b"secret" in take(keyless, 1)[0].data())
            keyless.close()
            b.publish_batches(topic, numbered("m", 10), 10, **more)
            payload = os.urandom(2_000_000)
            b.client.create_producer(topic, chunking_enabled=True, **more).send(payload)
            same("texts", ["secret"] + numbered("m", 10), texts(take(consumer, 11)))
            same("chunks", True, take(consumer, 1)[0].data() == payload)

    @check("delayed messages: none early, the others are not held up")
    def delayed(b, topic):
        consumer = b.subscribe(topic, kind=ConsumerType.Shared)
        producer = b.client.create_producer(topic)
        due = {}
        for millis in 1400, 1000, 1200:
            due[millis] = int(time.time() * 1000) + millis
            producer.send(f"{millis}".encode(), deliver_at=due[millis])
        producer.send(b"0")
        order = []
        for _ in range(4):
            millis = int(take(consumer, 1)[0].data())
            same(f"after {millis} is early", False, time.time() * 1000 < due.get(millis, 0))
            order.append(millis)
        same("not held up", 0, order[0])
        same("all", [0, 1000, 1200, 1400], sorted(order))

    @check("topics are made with partitions, or not at all, as the namespace says")
    def auto_creation(b, topic):
        parts = namespace(b, topic + "-p", autoTopicCreation='{"allowAutoTopicCreation":true,"topicType":"partitioned","defaultNumPartitions":3}')
        none = namespace(b, topic + "-n", autoTopicCreation='{"allowAutoTopicCreation":false}')
        consumer = b.subscribe(parts)
        same("partitions", 3, len(b.client.get_topic_partitions(parts)))
        b.publish(parts, numbered("m", 6))
        same("partitions that carry", 3, len({m.topic_name() for m in take(consumer, 6)}))
        refused("a producer where topics are not made", lambda: b.client.create_producer(none), pulsar.PulsarException)
