"""What the C++ client does with schemas."""
import pulsar
from pulsar.schema import AvroSchema, BytesSchema, Integer, JsonSchema, Record, String, StringSchema


class One(Record):
    _avro_namespace = "conform"
    name = String()
    age = Integer()


class Two(Record):
    _avro_namespace = "conform"
    name = String()
    age = Integer()
    town = String(required_default=True)  # writes the default, null, into the definition


class Other(Record):
    _avro_namespace = "conform"
    name = Integer()


def add(check, h):
    """Adds the checks; h are the functions of conform.py that they share."""
    same, refused = h.same, h.refused

    @check("AVRO and JSON schemas evolve, and what does not fit is refused")
    def schemas_evolve(b, topic):
        for kind in JsonSchema, AvroSchema:
            name = f"{topic}-{kind.__name__}"
            consumer = b.subscribe(name, schema=kind(Two))
            b.client.create_producer(name, schema=kind(One)).send(One(name="a", age=1))
            b.client.create_producer(name, schema=kind(Two)).send(Two(name="b", town="t"))
            got = []
            for _ in range(2):
                value = consumer.receive(timeout_millis=15000).value()
                got.append((value.name, value.age, value.town))
            same(f"values of {name}", [("a", 1, None), ("b", None, "t")], got)
            refused("a producer of another", lambda: b.client.create_producer(name, schema=kind(Other)), pulsar.IncompatibleSchema)
            refused("a consumer of another", lambda: b.subscribe(name, "other", schema=kind(Other)), pulsar.IncompatibleSchema)

    @check("strings and bytes")
    def schemas_plain(b, topic):
        for schema, value in (StringSchema(), "text"), (BytesSchema(), b"\x00\xff"):
            name = f"{topic}-{type(schema).__name__}"
            consumer = b.subscribe(name, schema=schema)
            b.client.create_producer(name, schema=schema).send(value)
            same(f"value of {name}", value, consumer.receive(timeout_millis=15000).value())
        refused("JSON where strings are", lambda: b.client.create_producer(f"{topic}-StringSchema", schema=JsonSchema(One)), pulsar.IncompatibleSchema)
