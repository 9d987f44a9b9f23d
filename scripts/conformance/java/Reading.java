import java.util.*;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.*;

/** What the Java client does with readers, seeks into batches, table views and compacted topics. */
class Reading extends Broker {
    Reading(String url, String admin) throws PulsarClientException { super(url, admin); }

    void addTo(Map<String, Conform.Body> checks) {
        checks.put("seek and start in the middle of a batch, inclusive or not", this::middleOfBatch);
        checks.put("a reader knows whether there is more: on empty, batched and partitioned topics", this::more);
        checks.put("a reader goes on where it was, and where it sought, when the topic was unloaded", this::keepsPlace);
        checks.put("a topic is compacted by request: the last value of each key, none of those deleted", this::compacted);
        checks.put("a table view has the last value of each key, and follows", this::table);
    }

    static List<String> rest(Reader<byte[]> r) throws Exception {
        List<String> out = new ArrayList<>();
        while (r.hasMessageAvailable()) {
            Message<byte[]> m = r.readNext(10, TimeUnit.SECONDS);
            if (m == null) throw new Unexpected("expected a message, as it was announced, after " + out);
            out.add(text(m));
        }
        return out;
    }

    /** Reads so many and no more. While it comes back to its topic, a reader cannot tell whether there is more. */
    static List<String> read(Reader<byte[]> r, int count) throws Exception {
        List<String> out = new ArrayList<>();
        for (Message<byte[]> m; out.size() < count && (m = r.readNext(10, TimeUnit.SECONDS)) != null; ) out.add(text(m));
        if (r.readNext(200, TimeUnit.MILLISECONDS) != null) throw new Unexpected("expected no more messages after " + out);
        return out;
    }

    ReaderBuilder<byte[]> reader(String topic, MessageId from) { return client.newReader().topic(topic).startMessageId(from); }

    void middleOfBatch(String topic) throws Exception {
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Exclusive).subscribe();
        Consumer<byte[]> inclusive = consumer(topic, SubscriptionType.Shared).subscriptionName("other").startMessageIdInclusive().subscribe();
        List<MessageId> ids = publishBatches(client.newProducer().topic(topic), numbered("m", 0, 20), 10);
        for (int i : new int[] {4, 9, 13}) {
            c.seek(ids.get(i));
            same("sought " + i, numbered("m", i + 1, 20), texts(take(c, 19 - i, true)));
            inclusive.seek(ids.get(i));
            same("sought " + i + ", inclusive", numbered("m", i, 20), texts(take(inclusive, 20 - i, true)));
            try (Reader<byte[]> r = reader(topic, ids.get(i)).create()) { same("read from " + i, numbered("m", i + 1, 20), rest(r)); }
            try (Reader<byte[]> r = reader(topic, ids.get(i)).startMessageIdInclusive().create()) {
                same("read from " + i + ", inclusive", numbered("m", i, 20), rest(r));
            }
        }
    }

    void more(String topic) throws Exception {
        try (Reader<byte[]> r = reader(topic, MessageId.earliest).create()) {
            same("on an empty topic", false, r.hasMessageAvailable());
            publishBatches(client.newProducer().topic(topic), numbered("m", 0, 5), 5);
            same("rest of a batch", numbered("m", 0, 5), rest(r));
        }
        try (Reader<byte[]> r = reader(topic, MessageId.latest).create()) { same("at the latest", List.of(), rest(r)); }
        try (Reader<byte[]> r = reader(topic, MessageId.latest).startMessageIdInclusive().create()) { same("the latest, inclusive", List.of("m-4"), rest(r)); }
        done("PUT", topic + "-p/partitions", "3");
        try (Reader<byte[]> r = reader(topic + "-p", MessageId.earliest).create()) {
            same("on empty partitions", false, r.hasMessageAvailable());
            for (int i = 0; i < 3; i++) publish(topic + "-p-partition-" + i, List.of("in " + i));
            same("of all partitions", List.of("in 0", "in 1", "in 2"), sorted(rest(r)));
        }
    }

    void unload(String topic, Reader<byte[]> r) throws Exception {
        done("PUT", topic + "/unload", null);
        Thread.sleep(200); // the client is to notice that it was put out
        settles("the reader is connected", 1, () -> r.isConnected() ? 1L : 0L);
    }

    void keepsPlace(String topic) throws Exception {
        List<MessageId> ids = publish(topic, numbered("m", 0, 5));
        Thread.sleep(20);
        long now = System.currentTimeMillis();
        Thread.sleep(20);
        publish(topic, numbered("m", 5, 10));
        try (Reader<byte[]> r = reader(topic, MessageId.earliest).create()) {
            for (int i = 0; i < 3; i++) same("first ones", "m-" + i, text(r.readNext(10, TimeUnit.SECONDS)));
            unload(topic, r);
            same("went on", numbered("m", 3, 10), read(r, 7));
            r.seek(ids.get(1));
            unload(topic, r);
            same("went on where it sought", numbered("m", 2, 10), read(r, 8));
            r.seek(now);
            same("from a time", numbered("m", 5, 10), rest(r));
            r.seek(MessageId.latest);
            same("from the latest", List.of(), rest(r));
        }
    }

    void keyed(Producer<byte[]> p, String key, String value) {
        TypedMessageBuilder<byte[]> m = p.newMessage().key(key);
        m.value(value == null ? null : value.getBytes()).sendAsync();
    }

    void compacted(String topic) throws Exception {
        consumer(topic, SubscriptionType.Exclusive).subscribe().close();
        for (boolean batches : new boolean[] {false, true}) {
            try (Producer<byte[]> p = client.newProducer().topic(topic).enableBatching(batches).batchingMaxPublishDelay(1, TimeUnit.SECONDS).create()) {
                for (int i = 0; i < 12; i++) keyed(p, "k" + i % 3 + batches, "m-" + i);
                keyed(p, "k1" + batches, null);
                keyed(p, "k1" + !batches, "again");
                p.flush();
            }
        }
        same("compaction", 204, call("PUT", topic + "/compaction").statusCode());
        settles("compaction has succeeded", 1, () -> call("GET", topic + "/compaction").body().contains("SUCCESS") ? 1L : 0L);
        List<String> want = List.of("m-9", "m-11", "m-9", "m-11", "again");
        try (Reader<byte[]> r = reader(topic, MessageId.earliest).readCompacted(true).create()) { same("read compacted", want, rest(r)); }
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Exclusive).subscriptionName("compacted").readCompacted(true).subscribe();
        same("consumed compacted", want, texts(take(c, 5, true)));
        publish(topic, List.of("after"));
        same("what came later", List.of("after"), texts(take(c, 1, true)));
        same("all of it, for who wants all", 29, take(consumer(topic, SubscriptionType.Exclusive).subscribe(), 29, true).size());
    }

    void table(String topic) throws Exception {
        Producer<byte[]> p = client.newProducer().topic(topic).enableBatching(false).create();
        for (int i = 0; i < 6; i++) p.newMessage().key("k" + i % 3).value(("m-" + i).getBytes()).send();
        p.newMessage().key("k1").value(null).send();
        try (TableView<byte[]> t = client.newTableView().topic(topic).create()) {
            settles("keys", 2, () -> (long) t.size());
            same("keys", Set.of("k0", "k2"), t.keySet());
            same("value", "m-3", new String(t.get("k0")));
            p.newMessage().key("k2").value(null).send();
            p.newMessage().key("k3").value("more".getBytes()).send();
            p.newMessage().key("k0").value("new".getBytes()).send();
            settles("new value", 1, () -> new String(t.get("k0")).equals("new") ? 1L : 0L);
            same("keys later", Set.of("k0", "k3"), t.keySet());
        }
    }
}
