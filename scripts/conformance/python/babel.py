"""What BabelQueue does over its Pulsar transport: jobs, retries, dead letters, workers that come and go.

    python babel.py pulsar://HOST:PORT QUEUE

is one worker in a process of its own, to be ended by signals: it prints a line when it begins a job and one when it
has done it, and stays in a job that says so until it is asked to end.
"""
import base64
import datetime
import itertools
import json
import logging
import subprocess
import sys
import threading
import time

import pulsar
from babelqueue import BabelQueue, EnvelopeCodec
from babelqueue.pulsar_transport import PulsarTransport
from babelqueue.redrive import redrive
from pulsar import InitialPosition
from topics import ask

URN = "urn:babel:meter:read"
NACK_MILLIS = 100


class Failing(Exception):
    pass


def transport(client, **more):
    more.setdefault("initial_position", InitialPosition.Earliest)
    return PulsarTransport(client=client, negative_ack_redelivery_delay_ms=NACK_MILLIS, **more)


def add(check, h):
    """Adds the checks; h are the functions of conform.py that they share."""
    same, take, texts, nothing_more, numbered = h.same, h.take, h.texts, h.nothing_more, h.numbered
    logging.getLogger("babelqueue").addHandler(logging.NullHandler())  # it warns of what the checks provoke

    def app(b, queue, options=None, **more):
        made = BabelQueue(transport=transport(b.client, **(options or {})), queue=queue, **more)
        made._rewind_pause = 0.05  # seconds it waits before it asks again for what it has handed back
        return made

    def records(consumer, count):
        """The next messages as pairs of envelope and properties."""
        return [(json.loads(m.data()), m.properties()) for m in take(consumer, count)]

    def work(worker, count):
        same("jobs processed", count, worker.consume(max_messages=count, timeout=10, handle_signals=False))

    def emptied(b, queue, witness=None):
        b.settles(f"backlog of {queue}", 0, lambda: b.backlog(queue, "babelqueue"))
        if witness:
            nothing_more(witness)

    @check("BabelQueue: a job arrives as it was published, and its properties tell of it")
    def babel_envelope(b, topic):
        witness, worker, got = b.subscribe(topic), app(b, topic), []
        worker.register(URN, lambda data, meta, message: got.append((data, meta, message)))
        data = {"meter": "M-7", "unit": "°C", "values": [21.5, None, {"漢": "ü\n\"/\\"}], "none": {}}
        number = worker.publish(URN, data, trace_id="trace-1")
        work(worker, 1)
        (envelope, properties), = records(witness, 1)
        same("properties", {"bq-job": URN, "bq-trace-id": "trace-1", "bq-message-id": number, "bq-schema-version": "1",
                            "bq-source-lang": "python", "bq-attempts": "0"}, properties)
        same("keys", ["job", "trace_id", "data", "meta", "attempts"], list(envelope))
        same("data", data, envelope["data"])
        same("queue and language", (topic, "python"), (envelope["meta"]["queue"], envelope["meta"]["lang"]))
        same("what the handler had", [(data, envelope["meta"], envelope)], got)
        emptied(b, topic, witness)

    @check("BabelQueue: a failing job is published again with bq-attempts counted up, then done")
    def babel_retry(b, topic):
        witness, worker, seen = b.subscribe(topic), app(b, topic, max_attempts=5, dead_letter=True), []

        def handle(data, meta, message):
            seen.append((data["n"], message["attempts"]))
            if data["n"] == 1 and message["attempts"] < 2:
                raise Failing("not yet")

        worker.register(URN, handle)
        ids = [worker.publish(URN, {"n": n}, trace_id=f"trace-{n}") for n in range(3)]
        work(worker, 5)
        same("attempts by job", [(0, 0), (1, 0), (1, 1), (1, 2), (2, 0)], sorted(seen))
        got = records(witness, 5)
        same("as published", [(ids[n], f"trace-{n}", str(a)) for n, a in ((0, 0), (1, 0), (2, 0), (1, 1), (1, 2))],
             [(p["bq-message-id"], p["bq-trace-id"], p["bq-attempts"]) for _, p in got])
        same("attempts of the bodies", [0, 0, 0, 1, 2], [e["attempts"] for e, _ in got])
        emptied(b, topic, witness)

    @check("BabelQueue: after the last attempt a job is in .dlq, and from there it is sent back")
    def babel_dead(b, topic):
        letters, worker, broken = b.subscribe(topic + ".dlq"), app(b, topic, max_attempts=3, dead_letter=True), [True]
        seen = []

        def handle(data, meta, message):
            seen.append(message["attempts"])
            if broken:
                raise Failing("ü broken")

        worker.register(URN, handle)
        number = worker.publish(URN, {"n": 1}, trace_id="trace-1")
        work(worker, 3)
        (envelope, properties), = records(letters, 1)
        letter = envelope["dead_letter"]
        same("attempts", [0, 1, 2], seen)
        same("dead letter", ("failed", "ü broken", "Failing", topic, 3, "python"),
             tuple(letter[k] for k in ("reason", "error", "exception", "original_queue", "attempts", "lang")))
        same("properties", (number, "trace-1", URN, "3"),
             tuple(properties[k] for k in ("bq-message-id", "bq-trace-id", "bq-job", "bq-attempts")))
        same("data", {"n": 1}, envelope["data"])
        emptied(b, topic)
        broken.clear()
        result = redrive(worker.transport, topic + ".dlq", timeout=0.5)
        same("sent back", (1, 0, [(number, "trace-1", "failed", topic)]),
             (result.redriven, result.skipped, [(i.message_id, i.trace_id, i.reason, i.to) for i in result.items]))
        work(worker, 1)
        same("attempts after that", [0, 1, 2, 0], seen)
        emptied(b, topic + ".dlq", letters)
        emptied(b, topic)

    @check("BabelQueue: a job that is handed back comes again, its redelivery count as attempts")
    def babel_back(b, topic):
        t = transport(b.client)
        app(b, topic).publish(URN, {"n": 1})
        for count in 0, 1, 2, 3:
            m = t.pop(topic, 10)
            same("count and attempts", (count, count), (m.native_attempts, json.loads(m.body)["attempts"]))
            same("count of the client, property", (count, "0"), (m.handle.redelivery_count(), m.handle.properties()["bq-attempts"]))
            t.rewind(m) if count < 3 else t.ack(m)
        same("after the acknowledgement", None, t.pop(topic, 3 * NACK_MILLIS / 1000))
        emptied(b, topic)

    @check("BabelQueue: the larger of bq-attempts and the redelivery count is told")
    def babel_larger(b, topic):
        t, body = transport(b.client), EnvelopeCodec.make(URN, {"n": 1}, queue=topic)
        body["attempts"] = 2
        t.publish(topic, EnvelopeCodec.encode(body))
        for want in 2, 2, 2, 3:
            m = t.pop(topic, 10)
            same("attempts", (want, want), (m.native_attempts, json.loads(m.body)["attempts"]))
            t.rewind(m) if want < 3 else t.ack(m)
        emptied(b, topic)

    @check("BabelQueue: delayed jobs, none early, none of them in the way")
    def babel_delayed(b, topic):
        worker, came = app(b, topic), []
        worker.register(URN, lambda data, meta: came.append((data["delay"], time.time() - data["sent"])))
        producer = b.client.create_producer(topic)
        nothing = worker.transport.pop(topic, 0.1)  # subscribes: who comes later finds them just as well
        for delay in 2000, 600, 0:
            body = EnvelopeCodec.encode(EnvelopeCodec.make(URN, {"delay": delay, "sent": time.time()}, queue=topic))
            more = {"deliver_after": datetime.timedelta(milliseconds=delay)} if delay else {}
            producer.send(body.encode(), properties=PulsarTransport._projection(body) | {"bq-delay": str(delay)}, **more)
        work(worker, 3)
        same("before them, and order", (None, [0, 600, 2000]), (nothing, [d for d, _ in came]))
        same("early", [], [(d, after) for d, after in came if after * 1000 < d])
        emptied(b, topic)

    @check("BabelQueue: poison goes to .dlq as it came, and does not stop the rest")
    def babel_poison(b, topic):
        letters, worker, seen = b.subscribe(topic + ".dlq"), app(b, topic, dead_letter=True), []
        worker.register(URN, lambda data, meta: seen.append(data["n"]))
        poison = [b"not JSON \xc3\xbc", b"\xff\xfe{}\x00", b'{"data":{"n":1}}', b"[1,2]", b""]
        producer = b.client.create_producer(topic)
        for n, body in enumerate(poison):
            worker.publish(URN, {"n": n})
            producer.send(body)
        worker.publish(URN, {"n": len(poison)})
        work(worker, 2 * len(poison) + 1)
        same("jobs done", list(range(len(poison) + 1)), seen)
        got, want = [], [{"raw": "not JSON ü"}, {"raw": base64.b64encode(poison[1]).decode(), "raw_encoding": "base64"},
                         {"data": {"n": 1}}, {"raw": "[1,2]"}, {"raw": ""}]
        for envelope, properties in records(letters, len(poison)):
            letter = envelope.pop("dead_letter")
            same("reason", ("poison", topic, 0), (letter["reason"], letter["original_queue"], letter["attempts"]))
            got.append(envelope)
        same("letters", want, got)
        emptied(b, topic, letters)

    @check("BabelQueue: poison without a .dlq is tried as often as a job, then dropped")
    def babel_dropped(b, topic):
        witness, worker, seen = b.subscribe(topic), app(b, topic, max_attempts=3), []
        worker.register(URN, lambda data, meta: seen.append(data["n"]))
        b.publish(topic, ["nonsense"])
        worker.publish(URN, {"n": 1})
        work(worker, 4)
        same("jobs done", [1], seen)
        bodies = texts(take(witness, 4))
        same("bodies", ["nonsense", '{"attempts":1}', '{"attempts":2}'], bodies[:1] + bodies[2:])
        emptied(b, topic, witness)

    @check("BabelQueue: a letter that .dlq does not take leaves its message with the queue")
    def babel_untaken(b, topic):
        letters = topic + ".dlq"
        path = f"/admin/v2/persistent/public/default/{letters}"
        same("create", 204, ask(b, "PUT", path))
        same("terminate", 200, ask(b, "POST", path + "/terminate", ""))
        worker = app(b, topic, dead_letter=True)
        b.publish(topic, ["nonsense"])
        work(worker, 3)
        same("backlog", 1, b.backlog(topic, "babelqueue"))
        same("delete", 204, ask(b, "DELETE", path + "?force=true"))
        work(worker, 1)
        (envelope, _), = records(b.subscribe(letters), 1)
        same("letter", ("nonsense", 3), (envelope["raw"], envelope["dead_letter"]["attempts"]))
        emptied(b, topic)

    @check("BabelQueue: jobs that nobody knows, by each of the four strategies")
    def babel_unknown(b, topic):
        other, want = "urn:babel:meter:other", {
            "fail": (3, [("unknown_urn", 3, "UnknownUrnError")]), "dead_letter": (1, [("unknown_urn", 0, None)]),
            "delete": (1, []), "release": (2, [])}
        for strategy, (turns, reasons) in want.items():
            queue, seen = f"{topic}-{strategy}", []
            letters = b.subscribe(queue + ".dlq")
            worker = app(b, queue, dead_letter=True, on_unknown_urn=strategy)
            worker.register(URN, lambda data, meta: seen.append(data["n"]))
            worker.publish(other, {"n": 1})
            worker.publish(URN, {"n": 2})
            work(worker, turns + 1)
            same("jobs done by " + strategy, [2], seen)
            got = [e["dead_letter"] for e, _ in records(letters, len(reasons))]
            same("letters by " + strategy, reasons, [(e["reason"], e["attempts"], e["exception"]) for e in got])
            if strategy == "release":
                worker.register(other, lambda data, meta, message: seen.append((data["n"], message["attempts"])))
                work(worker, 1)
                same("then", [2, (1, 0)], seen)
            emptied(b, queue, letters)

    @check("BabelQueue: bq-job and bq-schema-version decide, before the body and through retries")
    def babel_properties(b, topic):
        letters, worker, seen = b.subscribe(topic + ".dlq"), app(b, topic, max_attempts=2, dead_letter=True), []

        def handle(data, meta, message):
            seen.append((data["n"], message["job"], message["attempts"]))
            raise Failing("never")

        worker.register("urn:babel:meter:routed", handle)
        worker.register(URN, lambda data, meta: seen.append("by the body"))
        body = EnvelopeCodec.encode(EnvelopeCodec.make(URN, {"n": 1}, queue=topic))
        worker.transport.publish_routed(topic, body, "urn:babel:meter:routed")
        work(worker, 2)
        same("by the property", [(1, URN, 0), (1, URN, 1)], seen)
        (_, properties), = records(letters, 1)
        same("its property in .dlq", "urn:babel:meter:routed", properties["bq-job"])
        producer = b.client.create_producer(topic)
        producer.send(body.encode(), properties={"bq-schema-version": "2", "bq-job": "urn:babel:meter:new"})
        work(worker, 1)
        gated, = take(letters, 1)
        same("of another version: body", body, gated.data().decode())
        same("of another version: properties", ("2", "urn:babel:meter:new"),
             (gated.properties()["bq-schema-version"], gated.properties()["bq-job"]))
        same("handled meanwhile", 2, len(seen))
        emptied(b, topic, letters)

    @check("BabelQueue: two workers share a queue, each job once, and one alone goes on")
    def babel_two(b, topic):
        done, lock, clients, workers, threads = [], threading.Lock(), [], [], []
        for name in "ab":
            clients.append(b.connect())
            worker = BabelQueue(transport=transport(clients[-1], receiver_queue_size=4), queue=topic)

            def handle(data, meta, *, name=name):
                time.sleep(0.01)
                with lock:
                    done.append((data["n"], name))

            worker.register(URN, handle)
            worker.transport.pop(topic, 0.05)  # subscribes
            workers.append(worker)
        publisher = app(b, topic)
        for n in range(40):
            publisher.publish(URN, {"n": n})
        for worker in workers:
            threads.append(threading.Thread(target=worker.consume, kwargs={"timeout": 0.1}, daemon=True))
            threads[-1].start()
        b.settles("jobs done", 40, lambda: len(done))
        same("each once", list(range(40)), sorted(n for n, _ in done))
        same("both had work", ["a", "b"], sorted({name for _, name in done}))
        workers[0].stop()
        threads[0].join(10)
        clients[0].close()
        for n in range(40, 50):
            publisher.publish(URN, {"n": n})
        b.settles("jobs done by the other", 50, lambda: len(done))
        same("each once by the other", [(n, "b") for n in range(40, 50)], sorted(done[40:]))
        workers[1].stop()
        threads[1].join(10)
        clients[1].close()
        emptied(b, topic)

    @check("BabelQueue: a worker ended, and one killed, in the middle of a job")
    def babel_restart(b, topic):
        publisher, seen = app(b, topic, {"subscription": "unused"}), []
        for n in range(10):
            publisher.publish(URN, {"n": n, "stay": n in (3, 6)})
        for at, end in (3, subprocess.Popen.terminate), (6, subprocess.Popen.kill):
            process = subprocess.Popen([sys.executable, __file__, b.url, topic], stdout=subprocess.PIPE, text=True)
            try:
                lines = list(itertools.takewhile(lambda line: line != f"begin {at}\n", process.stdout))
                b.settles("backlog when what it has done is acknowledged", 10 - at, lambda: b.backlog(topic, "babelqueue"))
                end(process)
                lines += process.stdout
            finally:
                process.kill()
                process.wait(10)
            seen.append([line.strip() for line in lines if line.startswith("done")])
        same("done by the two", [[f"done {n}" for n in r] for r in (range(4), range(4, 6))], seen)
        rest, worker = [], app(b, topic)
        worker.register(URN, lambda data, meta, message: rest.append((data["n"], message["attempts"])))
        work(worker, 4)
        same("done by the third, at the first attempt", [(n, 0) for n in range(6, 10)], rest)
        emptied(b, topic)


def main(url, queue):
    log = pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null")
    worker = BabelQueue(transport=transport(pulsar.Client(url, logger=log)), queue=queue)

    @worker.handler(URN)
    def handle(data, meta):
        print("begin", data["n"], flush=True)
        if data["stay"]:
            worker._stop.wait(30)  # until it is asked to end
        print("done", data["n"], flush=True)

    worker.run(timeout=0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
