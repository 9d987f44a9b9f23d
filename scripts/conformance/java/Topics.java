import java.util.*;
import java.util.concurrent.*;
import java.util.regex.Pattern;
import org.apache.pulsar.client.api.*;

/** What the Java client does with topics as a whole: kinds of them, lists, partitions, ends. */
class Topics extends Broker {
    Topics(String url, String admin) throws PulsarClientException { super(url, admin); }

    void addTo(Map<String, Conform.Body> checks) {
        checks.put("a client with an http:// service URL looks up, lists and reads", this::overHTTP);
        checks.put("a pattern follows topics that come and go, told by a watcher", this::pattern);
        checks.put("a non-persistent topic gives what it can at once", this::nonPersistent);
        checks.put("partitions are added, and clients notice", this::partitions);
        checks.put("a terminated topic: no more is taken, the rest is read, its end is told", this::terminated);
        checks.put("a topic deleted by force comes back empty", this::deleted);
        checks.put("names of any characters", this::names);
    }

    void overHTTP(String topic) throws Exception {
        done("PUT", topic + "-p/partitions", "3");
        try (PulsarClient c = PulsarClient.builder().serviceUrl(admin).operationTimeout(15, TimeUnit.SECONDS).build()) {
            same("partitions", 3, c.getPartitionsForTopic(topic + "-p").get(15, TimeUnit.SECONDS).size());
            same("partitions of a missing topic", 1, c.getPartitionsForTopic(topic + "-none").get(15, TimeUnit.SECONDS).size());
            for (String name : List.of(topic, topic + "-p")) {
                Consumer<byte[]> r = c.newConsumer(Schema.BYTES).topic(name).subscriptionName("sub").subscribe();
                Producer<byte[]> p = c.newProducer().topic(name).enableBatching(false).create();
                for (String t : numbered("m", 0, 6)) p.send(t.getBytes());
                same("texts of " + name, numbered("m", 0, 6), sorted(texts(take(r, 6, true))));
            }
            Consumer<byte[]> all = c.newConsumer().topicsPattern(Pattern.compile("persistent://public/default/" + topic + ".*"))
                .subscriptionName("all").subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
            same("messages of both", 12, take(all, 12, true).size());
        }
    }

    void pattern(String topic) throws Exception {
        String prefix = "t" + Long.toHexString(System.nanoTime() & 0xffffff); // long patterns are not watched
        done("PUT", prefix + "-a", null);
        Consumer<byte[]> c = client.newConsumer().topicsPattern(Pattern.compile("persistent://public/default/" + prefix + "-.*"))
            .subscriptionName("sub").subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
        publish(prefix + "-a", List.of("a"));
        same("the topic that was there", List.of("a"), texts(take(c, 1, true)));
        done("PUT", prefix + "-b", null);
        done("PUT", prefix + "-c/partitions", "2");
        for (String part : List.of("-b", "-c", "-d")) publish(prefix + part, List.of(part)); // the last one creates it
        same("topics that came", List.of("-b", "-c", "-d"), sorted(texts(take(c, 3, true))));
        done("DELETE", prefix + "-b?force=true", null);
        publish(prefix + "-a", List.of("a2"));
        same("when one has gone", List.of("a2"), texts(take(c, 1, true)));
        c.close();
    }

    void nonPersistent(String topic) throws Exception {
        String name = "non-persistent://public/default/" + topic;
        Producer<byte[]> p = client.newProducer().topic(name).enableBatching(false).create();
        p.send("nobody".getBytes());
        Consumer<byte[]> one = consumer(name, SubscriptionType.Exclusive).subscribe();
        Consumer<byte[]> other = client.newConsumer().topic(name).subscriptionName("other").subscriptionType(SubscriptionType.Shared).subscribe();
        for (String t : numbered("m", 0, 100)) p.send(t.getBytes());
        same("one subscription", numbered("m", 0, 100), texts(take(one, 100, true)));
        same("the other", numbered("m", 0, 100), texts(take(other, 100, false)));
        other.redeliverUnacknowledgedMessages();
        nothingMore(other, 300);
        one.seek(MessageId.earliest);
        nothingMore(one, 300);
        p.send("last".getBytes());
        same("behind a seek", List.of("last"), texts(take(one, 1, true)));
        same("statistics", 200, ask("GET", "/admin/v2/non-persistent/public/default/" + topic + "/stats", null));
    }

    void partitions(String topic) throws Exception {
        done("PUT", topic + "/partitions", "2");
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Shared).autoUpdatePartitionsInterval(1, TimeUnit.SECONDS).subscribe();
        Producer<byte[]> p = client.newProducer().topic(topic).enableBatching(false)
            .autoUpdatePartitionsInterval(1, TimeUnit.SECONDS).messageRoutingMode(MessageRoutingMode.RoundRobinPartition).create();
        done("POST", topic + "/partitions", "5");
        same("fewer", 422, ask("POST", "/admin/v2/persistent/public/default/" + topic + "/partitions", "4"));
        Set<String> seen = new TreeSet<>();
        for (long end = System.nanoTime() + 20_000_000_000L; seen.size() < 5 && System.nanoTime() < end; ) {
            p.send("x".getBytes());
            seen.add(take(c, 1, true).get(0).getTopicName());
        }
        same("partitions that carry", 5, seen.size());
        same("in use", 412, ask("DELETE", "/admin/v2/persistent/public/default/" + topic + "/partitions", null));
        p.close();
        c.close();
        done("DELETE", topic + "/partitions", null);
        same("gone", 404, ask("GET", "/admin/v2/persistent/public/default/" + topic + "/partitions", null));
    }

    void terminated(String topic) throws Exception {
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Exclusive).subscribe();
        Producer<byte[]> p = client.newProducer().topic(topic).enableBatching(false).create();
        p.send("last".getBytes());
        same("terminate", 200, ask("POST", "/admin/v2/persistent/public/default/" + topic + "/terminate", ""));
        refused("a further message", PulsarClientException.class, () -> p.send("more".getBytes()));
        refused("a further producer", PulsarClientException.TopicTerminatedException.class, () -> client.newProducer().topic(topic).create());
        same("what was there", List.of("last"), texts(take(c, 1, true)));
        for (long until = System.nanoTime() + 10_000_000_000L; !c.hasReachedEndOfTopic() && System.nanoTime() < until; ) Thread.sleep(50);
        same("the end is told", true, c.hasReachedEndOfTopic());
    }

    void deleted(String topic) throws Exception {
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Exclusive).subscribe();
        publish(topic, List.of("old"));
        take(c, 1, false);
        same("in use", 412, ask("DELETE", "/admin/v2/persistent/public/default/" + topic, null));
        done("DELETE", topic + "?force=true", null);
        publish(topic, List.of("new"));
        same("then", List.of("new"), texts(take(c, 1, true)));
    }

    void names(String topic) throws Exception {
        for (String odd : List.of("a b", "100%", "ü-ß-漢", "q?x=1&y", "#h;c", "a+b", "..", "%2F", "x-partition-y")) {
            String name = "persistent://public/default/" + topic + odd;
            Consumer<byte[]> c = consumer(name, SubscriptionType.Exclusive).subscribe();
            publish(name, List.of(odd));
            same("by the name " + odd, List.of(odd), texts(take(c, 1, true)));
            c.close();
        }
    }
}
