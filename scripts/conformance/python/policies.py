"""What clients meet where policies hold producers back or refuse them."""
import os
import threading
import time

import pulsar
from pulsar import ConsumerType
from topics import ask


def add(check, h):
    """Adds the checks; h are the functions of conform.py that they share."""
    same, refused, take, texts, numbered = h.same, h.refused, h.take, h.texts, h.numbered

    def policy(b, place, policy, body):
        same(f"{policy} of {place}", 204, ask(b, "POST", f"/admin/v2/{place}/{policy}", body))

    def namespace(b, name, **policies):
        same("namespace", 204, ask(b, "PUT", f"/admin/v2/namespaces/public/{name}"))
        for word, body in policies.items():
            policy(b, f"namespaces/public/{name}", word, body)
        return f"persistent://public/{name}/t"

    def rate(messages):
        return f'{{"publishThrottlingRateInMsg":{messages},"publishThrottlingRateInByte":-1}}'

    class Sends:
        """Sends that wait for their receipts."""

        def __init__(self, producer, bodies):
            self.begin, self.results, self.took, self.done = time.monotonic(), [], [], threading.Event()
            self.count = len(bodies)
            for body in bodies:
                producer.send_async(body.encode(), self.receipt)

        def receipt(self, result, message_id):
            self.results.append(result)
            self.took.append(time.monotonic() - self.begin)
            if len(self.results) == self.count:
                self.done.set()

        def end(self):
            same("all receipts came", True, self.done.wait(30))
            same("refused", [], [r for r in self.results if r != pulsar.Result.Ok])
            return self.took[-1]

    @check("a producer above the publish rate is held back, in order and without an error")
    def throttled(b, topic):
        name = namespace(b, topic, publishRate=rate(20))
        own = type(b)(b.url, b.admin)  # a real Pulsar does not read from this connection meanwhile
        consumer = own.subscribe(name)
        producer = b.client.create_producer(name)
        took = Sends(producer, numbered("m", 80)).end()
        same(f"80 at 20 a second took {took:.2f} s, more than 2.6 and less than 4.5", True, 2.6 < took < 4.5)
        sends = Sends(producer, numbered("n", 150))
        time.sleep(0.5)
        policy(b, f"namespaces/public/{topic}", "publishRate", rate(0))
        took = sends.end()
        same(f"150 took {took:.2f} s when the rate was gone, less than 5", True, took < 5)
        same("what came", numbered("m", 80) + numbered("n", 150), texts(take(consumer, 230)))

    @check("where encryption is required who does not encrypt is refused")
    def encryption(b, topic):
        name = namespace(b, topic)
        producer = b.client.create_producer(name)
        producer.send(b"before")
        policy(b, f"namespaces/public/{topic}", "encryptionRequired", "true")
        log = pulsar.FileLogger(pulsar.LoggerLevel.Info, os.devnull)
        hasty = pulsar.Client(b.url, operation_timeout_seconds=2, logger=log)  # this client tries again until then
        refused("a producer", lambda: hasty.create_producer(name), pulsar.PulsarException)
        hasty.close()
        policy(b, f"namespaces/public/{topic}", "encryptionRequired", "false")
        b.client.create_producer(name).send(b"after")
        same("what came", ["before", "after"], texts(take(b.subscribe(name), 2)))

    @check("types of subscriptions that are not enabled are refused, others are not")
    def types(b, topic):
        # Where Exclusive ones are not enabled a real Pulsar cannot read its own topics, and loses this one by that.
        name = namespace(b, topic, subscriptionTypesEnabled='["Exclusive","Failover"]')
        for kind in ConsumerType.Shared, ConsumerType.KeyShared:
            refused(str(kind), lambda: b.subscribe(name, kind=kind), pulsar.PulsarException)
        consumer = b.subscribe(name, kind=ConsumerType.Failover)
        b.publish(name, ["m"])
        same("what came", ["m"], texts(take(consumer, 1)))
