import java.util.*;
import org.apache.pulsar.client.api.*;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.common.schema.*;

/** What the Java client does with schemas. */
class Schemas extends Broker {
    Schemas(String url, String admin) throws PulsarClientException { super(url, admin); }

    public static class One { public String name; public int age; }

    /** One, and more; in Java every field may be null, so that each reads the other. */
    public static class Two { public String name; public int age; public String town; }

    public static class Other { public String[] name; }

    void addTo(Map<String, Conform.Body> checks) {
        checks.put("AVRO and JSON schemas evolve, and what does not fit is refused", this::evolve);
        checks.put("AUTO_CONSUME reads every version, AUTO_PRODUCE checks bytes", this::automatic);
        checks.put("pairs of key and value, inline and separated", this::pairs);
    }

    void evolve(String topic) throws Exception {
        evolve(topic + "-avro", Schema.AVRO(One.class), Schema.AVRO(Two.class), Schema.AVRO(Other.class));
        evolve(topic + "-json", Schema.JSON(One.class), Schema.JSON(Two.class), Schema.JSON(Other.class));
        refused("AVRO where JSON is", PulsarClientException.IncompatibleSchemaException.class,
            () -> client.newProducer(Schema.AVRO(One.class)).topic(topic + "-json").create());
    }

    void evolve(String topic, Schema<One> one, Schema<Two> two, Schema<Other> other) throws Exception {
        Consumer<Two> c = client.newConsumer(two).topic(topic).subscriptionName("sub").subscribe();
        try (Producer<One> p = client.newProducer(one).topic(topic).create()) {
            One v = new One();
            v.name = "a";
            v.age = 1;
            p.send(v);
        }
        try (Producer<Two> p = client.newProducer(two).topic(topic).create()) {
            Two v = new Two();
            v.name = "b";
            v.town = "t";
            p.send(v);
        }
        List<String> got = new ArrayList<>(), versions = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            Message<Two> m = c.receive(15, java.util.concurrent.TimeUnit.SECONDS);
            got.add(m.getValue().name + m.getValue().age + m.getValue().town);
            versions.add(Integer.toString(m.getSchemaVersion()[7]));
        }
        same("values", List.of("a1null", "b0t"), got);
        same("versions", List.of("1", "0"), versions);
        refused("a producer of another", PulsarClientException.IncompatibleSchemaException.class,
            () -> client.newProducer(other).topic(topic).create());
        refused("a consumer of another", PulsarClientException.IncompatibleSchemaException.class,
            () -> client.newConsumer(other).topic(topic).subscriptionName("other").subscribe());
    }

    void automatic(String topic) throws Exception {
        try (Producer<One> p = client.newProducer(Schema.AVRO(One.class)).topic(topic).create()) {
            One v = new One();
            v.name = "a";
            p.send(v);
        }
        Two v = new Two();
        v.town = "t";
        try (Producer<Two> p = client.newProducer(Schema.AVRO(Two.class)).topic(topic).create()) { p.send(v); }
        try (Producer<byte[]> p = client.newProducer(Schema.AUTO_PRODUCE_BYTES()).topic(topic).create()) {
            p.send(Schema.AVRO(Two.class).encode(v));
            refused("bytes that are no such value", SchemaSerializationException.class, () -> p.send(new byte[] {-1, -1, -1}));
        }
        Consumer<GenericRecord> c = client.newConsumer(Schema.AUTO_CONSUME()).topic(topic).subscriptionName("sub")
            .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
        List<String> got = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            GenericRecord r = c.receive(15, java.util.concurrent.TimeUnit.SECONDS).getValue();
            got.add(r.getFields().size() + " " + (r.getFields().size() == 3 ? r.getField("town") : r.getField("name")));
        }
        same("fields and values", List.of("2 a", "3 t", "3 t"), got);
    }

    void pairs(String topic) throws Exception {
        for (KeyValueEncodingType encoding : KeyValueEncodingType.values()) {
            Schema<KeyValue<String, One>> schema = Schema.KeyValue(Schema.STRING, Schema.JSON(One.class), encoding);
            String name = topic + "-" + encoding;
            Consumer<KeyValue<String, One>> c = client.newConsumer(schema).topic(name).subscriptionName("sub").subscribe();
            One v = new One();
            v.name = "a";
            client.newProducer(schema).topic(name).create().send(new KeyValue<>("k", v));
            Message<KeyValue<String, One>> m = c.receive(15, java.util.concurrent.TimeUnit.SECONDS);
            same("pair", "k a", m.getValue().getKey() + " " + m.getValue().getValue().name);
            same("the message has a key", encoding == KeyValueEncodingType.SEPARATED, m.hasKey());
            refused("another value", PulsarClientException.IncompatibleSchemaException.class,
                () -> client.newProducer(Schema.KeyValue(Schema.STRING, Schema.JSON(Other.class), encoding)).topic(name).create());
        }
    }
}
