import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.pulsar.client.api.*;

/**
 * Checks a broker with the official Java client:
 *
 *   java -cp 'pulsar-client 4.0.7 with its dependencies, and these classes' Conform pulsar://HOST:PORT http://HOST:PORT [PART-OF-A-NAME]
 *
 * With a part of a name only the checks with it in their names run. Each check has topics of its own, prints one line
 * and is given LIMIT seconds. The first that fails ends the program with exit code 1, after a line that says what was
 * expected and what was seen.
 */
public class Conform extends Broker {
    static final int LIMIT = 90;
    static final String RUN = "java-" + Long.toHexString(System.currentTimeMillis()) + "-" + ProcessHandle.current().pid();

    interface Body { void run(String topic) throws Exception; }

    /** Run one after the other, while those beside them, which mostly wait, run BESIDE at a time. */
    final Map<String, Body> checks = new LinkedHashMap<>(), beside = new LinkedHashMap<>();
    static final int BESIDE = 4;

    public static void main(String[] args) throws Exception {
        new Conform(args[0], args[1]).runAll(args.length > 2 ? args[2] : "");
        System.exit(0);
    }

    Conform(String url, String admin) throws Exception {
        super(url, admin);
        checks.put("publish, receive, acknowledge, with keys, properties and event time", this::plain);
        checks.put("batches keep order, keys and properties", this::batches);
        checks.put("batches by key keep each key together", this::keyBatches);
        checks.put("part of a batch acknowledged: the rest comes again, by batch index", this::batchParts);
        checks.put("every compression, single and in batches", this::compression);
        checks.put("large messages pass, too large ones are refused by the client", this::large);
        checks.put("cumulative acknowledgement", this::cumulative);
        checks.put("acknowledgements with receipt", this::ackReceipts);
        checks.put("a negative acknowledgement brings redelivery with its count", this::nack);
        checks.put("messages too often redelivered go to the dead letter topic", this::deadLetters);
        checks.put("a reader reads to the end, and from an id, inclusive or not", this::reader);
        checks.put("seek to the earliest, the latest, an id and a time", this::seek);
        checks.put("Exclusive: a second consumer is refused, until the first leaves", this::exclusive);
        checks.put("Shared: each message to one consumer, what one leaves goes to the other", this::shared);
        checks.put("Failover: one consumer has all, the other takes over in order", this::failover);
        checks.put("Key_Shared: a key stays with one consumer, in order", this::keyShared);
        checks.put("initial position latest, and unsubscribe", this::positions);
        checks.put("two producers of one name: the second is refused", this::producerNames);
        checks.put("after the topic was unloaded, producer and consumer go on", this::unload);
        new Subscriptions(url, admin).addTo(beside);
        new Reading(url, admin).addTo(beside);
        new Producing(url, admin).addTo(beside);
        new Topics(url, admin).addTo(checks);
        new Transactions(url, admin).addTo(checks);
        new Schemas(url, admin).addTo(checks);
        new Babel(url, admin).addTo(checks);
    }

    void runAll(String part) throws InterruptedException {
        for (Map<String, Body> all : List.of(checks, beside)) all.keySet().removeIf(name -> !name.contains(part));
        ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor();
        ExecutorService pool = Executors.newFixedThreadPool(BESIDE);
        beside.forEach((name, body) -> pool.execute(() -> run(clock, name, body)));
        checks.forEach((name, body) -> run(clock, name, body));
        pool.shutdown();
        pool.awaitTermination(1, TimeUnit.DAYS); // each check has its limit
        System.out.printf("java: %d passed, 0 failed%n", checks.size() + beside.size());
    }

    static void run(ScheduledExecutorService clock, String name, Body body) {
        ScheduledFuture<?> late = clock.schedule(() -> fail(name, "expected an end within " + LIMIT + " s, saw none"), LIMIT, TimeUnit.SECONDS);
        long begin = System.nanoTime();
        try {
            body.run(RUN + "-" + Integer.toHexString(name.hashCode()));
        } catch (Unexpected e) {
            fail(name, e.getMessage());
        } catch (Throwable e) {
            fail(name, e.toString());
        }
        late.cancel(false);
        System.out.printf(Locale.ROOT, "ok java: %s (%.1f s)%n", name, (System.nanoTime() - begin) / 1e9);
    }

    static void fail(String name, String why) {
        System.out.println("FAIL java: " + name + ": " + why);
        System.out.flush();
        Runtime.getRuntime().halt(1);
    }

    void plain(String topic) throws Exception {
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Exclusive).subscribe();
        Producer<byte[]> p = client.newProducer().topic(topic).producerName(topic + "-p").enableBatching(false).create();
        p.newMessage().key("k").orderingKey(new byte[] {0, 1}).property("unit", "°C").property("empty", "")
            .eventTime(1_700_000_000_123L).sequenceId(41).value("first".getBytes()).send();
        p.newMessage().key("k").sequenceId(42).value(null).send();
        List<Message<byte[]>> got = take(c, 2, true);
        Message<byte[]> m = got.get(0);
        same("payload", "first", text(m));
        same("properties", Map.of("unit", "°C", "empty", ""), m.getProperties());
        same("key", "k", m.getKey());
        same("ordering key", List.of(0, 1), List.of((int) m.getOrderingKey()[0], (int) m.getOrderingKey()[1]));
        same("event time", 1_700_000_000_123L, m.getEventTime());
        same("sequence id", 41L, m.getSequenceId());
        same("producer", topic + "-p", m.getProducerName());
        same("null payload", null, got.get(1).getValue());
        same("ids rise", true, m.getMessageId().compareTo(got.get(1).getMessageId()) < 0);
        settles("backlog after acknowledging all", 0, () -> backlog(topic));
        c.close();
        nothingMore(consumer(topic, SubscriptionType.Exclusive).subscribe(), 300);
    }

    void batches(String topic) throws Exception {
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Exclusive).subscribe();
        List<MessageId> ids = publishBatches(client.newProducer().topic(topic), numbered("m", 0, 100), 25);
        same("entries of 100 messages in batches of 25", 4L,
            ids.stream().map(i -> (MessageIdAdv) i).map(i -> i.getLedgerId() + ":" + i.getEntryId()).distinct().count());
        List<Message<byte[]>> got = take(c, 100, true);
        same("texts", numbered("m", 0, 100), texts(got));
        same("keys", IntStream.range(0, 100).mapToObj(i -> "k" + i % 3).toList(), got.stream().map(Message::getKey).toList());
        same("properties", IntStream.range(0, 100).mapToObj(i -> "" + i).toList(), got.stream().map(m -> m.getProperty("n")).toList());
        settles("backlog after acknowledging all", 0, () -> backlog(topic));
    }

    void keyBatches(String topic) throws Exception {
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Exclusive).subscribe();
        publishBatches(client.newProducer().topic(topic).batcherBuilder(BatcherBuilder.KEY_BASED), numbered("m", 0, 30), 30);
        Map<Long, Set<String>> keys = new HashMap<>();
        List<Message<byte[]>> got = take(c, 30, true);
        for (Message<byte[]> m : got) {
            keys.computeIfAbsent(((MessageIdAdv) m.getMessageId()).getEntryId(), e -> new HashSet<>()).add(m.getKey());
        }
        same("keys of each entry", List.of(1, 1, 1), keys.values().stream().map(Set::size).toList());
        same("all arrived", sorted(numbered("m", 0, 30)), sorted(texts(got)));
    }

    void batchParts(String topic) throws Exception {
        Function<String, ConsumerBuilder<byte[]>> open = t -> consumer(t, SubscriptionType.Shared).enableBatchIndexAcknowledgment(true);
        Consumer<byte[]> c = open.apply(topic).subscribe();
        publishBatches(client.newProducer().topic(topic), numbered("m", 0, 10), 10);
        for (Message<byte[]> m : take(c, 10, false)) if (Integer.parseInt(m.getProperty("n")) % 2 == 1) c.acknowledge(m);
        c.close();
        Consumer<byte[]> again = open.apply(topic).subscribe();
        same("came again", List.of("m-0", "m-2", "m-4", "m-6", "m-8"), texts(take(again, 5, true)));
        nothingMore(again, 300);
    }

    void compression(String topic) throws Exception {
        String text = "temperature 21.5 °C; ".repeat(50);
        for (CompressionType kind : CompressionType.values()) {
            String own = topic + "-" + kind;
            Consumer<byte[]> c = consumer(own, SubscriptionType.Exclusive).subscribe();
            try (Producer<byte[]> p = client.newProducer().topic(own).compressionType(kind).enableBatching(false).create()) {
                p.send(text.getBytes(StandardCharsets.UTF_8));
            }
            publishBatches(client.newProducer().topic(own).compressionType(kind), Collections.nCopies(20, text), 10);
            same("texts with " + kind, Collections.nCopies(21, text), texts(take(c, 21, true)));
        }
    }

    void large(String topic) throws Exception {
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Exclusive).subscribe();
        byte[] payload = new byte[1_000_000];
        new Random(1).nextBytes(payload);
        try (Producer<byte[]> p = client.newProducer().topic(topic).enableBatching(false).create()) {
            p.send(payload);
            refused("6 MB", PulsarClientException.InvalidMessageException.class, () -> p.send(new byte[6_000_000]));
            p.send("after".getBytes());
        }
        List<Message<byte[]>> got = take(c, 2, true);
        same("large payload arrives unchanged", true, Arrays.equals(payload, got.get(0).getData()));
        same("next message", "after", text(got.get(1)));
    }

    void cumulative(String topic) throws Exception {
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Exclusive).subscribe();
        publish(topic, numbered("m", 0, 10));
        c.acknowledgeCumulative(take(c, 10, false).get(6));
        settles("backlog", 3, () -> backlog(topic));
        c.close();
        same("came again", numbered("m", 7, 10), texts(take(consumer(topic, SubscriptionType.Exclusive).subscribe(), 3, true)));
    }

    void ackReceipts(String topic) throws Exception {
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Shared).isAckReceiptEnabled(true).subscribe();
        publish(topic, numbered("m", 0, 10));
        for (Message<byte[]> m : take(c, 10, false)) c.acknowledgeAsync(m).get(10, TimeUnit.SECONDS);
        same("backlog at once after the last receipt", 0L, backlog(topic));
    }

    void nack(String topic) throws Exception {
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Shared).negativeAckRedeliveryDelay(200, TimeUnit.MILLISECONDS).subscribe();
        publish(topic, numbered("m", 0, 3));
        for (Message<byte[]> m : take(c, 3, false)) {
            if (text(m).equals("m-1")) c.negativeAcknowledge(m); else c.acknowledge(m);
        }
        for (int count = 1; count <= 2; count++) {
            Message<byte[]> m = take(c, 1, false).get(0);
            same("redelivered", "m-1", text(m));
            same("redelivery count", count, m.getRedeliveryCount());
            if (count == 1) c.negativeAcknowledge(m); else c.acknowledge(m);
        }
        nothingMore(c, 600);
        settles("backlog", 0, () -> backlog(topic));
    }

    void deadLetters(String topic) throws Exception {
        Consumer<byte[]> letters = consumer(topic + "-dead", SubscriptionType.Exclusive).subscribe();
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Shared).negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS)
            .deadLetterPolicy(DeadLetterPolicy.builder().maxRedeliverCount(2).deadLetterTopic(topic + "-dead").build()).subscribe();
        publish(topic, List.of("poison"));
        for (int i = 0; i < 3; i++) c.negativeAcknowledge(take(c, 1, false).get(0));
        nothingMore(c, 1000);
        same("dead letter", List.of("poison"), texts(take(letters, 1, true)));
    }

    List<String> read(ReaderBuilder<byte[]> from) throws Exception {
        List<String> out = new ArrayList<>();
        try (Reader<byte[]> r = from.create()) {
            while (r.hasMessageAvailable()) out.add(text(r.readNext(10, TimeUnit.SECONDS)));
        }
        return out;
    }

    void reader(String topic) throws Exception {
        List<MessageId> ids = publish(topic, numbered("m", 0, 10));
        publishBatches(client.newProducer().topic(topic), numbered("m", 10, 20), 10);
        same("from the earliest", numbered("m", 0, 20), read(client.newReader().topic(topic).startMessageId(MessageId.earliest)));
        same("after the fifth", numbered("m", 5, 20), read(client.newReader().topic(topic).startMessageId(ids.get(4))));
        same("from the fifth", numbered("m", 4, 20), read(client.newReader().topic(topic).startMessageId(ids.get(4)).startMessageIdInclusive()));
        try (Reader<byte[]> latest = client.newReader().topic(topic).startMessageId(MessageId.latest).create()) {
            same("at the latest, something there", false, latest.hasMessageAvailable());
            publish(topic, List.of("new"));
            same("at the latest, new message", "new", text(latest.readNext(10, TimeUnit.SECONDS)));
        }
        same("backlogs left", -1L, backlog(topic));
    }

    void seek(String topic) throws Exception {
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Exclusive).subscribe();
        List<MessageId> ids = publish(topic, numbered("m", 0, 5));
        take(c, 5, true);
        Thread.sleep(50);
        long now = System.currentTimeMillis();
        Thread.sleep(50);
        publish(topic, numbered("m", 5, 10));
        c.seek(MessageId.earliest);
        same("after seeking to the earliest", numbered("m", 0, 10), texts(take(c, 10, true)));
        c.seek(ids.get(2));
        same("after seeking to the third id", numbered("m", 3, 10), texts(take(c, 7, true)));
        c.seek(now);
        same("after seeking to the time", numbered("m", 5, 10), texts(take(c, 5, true)));
        c.seek(MessageId.latest);
        nothingMore(c, 300);
        publish(topic, List.of("last"));
        same("after seeking to the latest", List.of("last"), texts(take(c, 1, true)));
    }

    void exclusive(String topic) throws Exception {
        Consumer<byte[]> first = consumer(topic, SubscriptionType.Exclusive).subscribe();
        refused("second consumer", PulsarClientException.ConsumerBusyException.class, () -> consumer(topic, SubscriptionType.Exclusive).subscribe());
        first.close();
        consumer(topic, SubscriptionType.Exclusive).subscribe().close();
    }

    void shared(String topic) throws Exception {
        Consumer<byte[]> one = consumer(topic, SubscriptionType.Shared).receiverQueueSize(10).subscribe();
        Consumer<byte[]> two = consumer(topic, SubscriptionType.Shared).receiverQueueSize(10).subscribe();
        publish(topic, numbered("m", 0, 20));
        List<String> left = texts(drain(one, false)), together = new ArrayList<>(texts(drain(two, true)));
        same("both have work", true, !left.isEmpty() && !together.isEmpty());
        together.addAll(left);
        same("together", sorted(numbered("m", 0, 20)), sorted(together));
        one.close();
        same("what the first left", sorted(left), sorted(texts(take(two, left.size(), true))));
    }

    void failover(String topic) throws Exception {
        Consumer<byte[]> one = consumer(topic, SubscriptionType.Failover).consumerName("a").subscribe();
        Consumer<byte[]> two = consumer(topic, SubscriptionType.Failover).consumerName("b").subscribe();
        Thread.sleep(1200); // which of them is active is the broker's choice, and it may take a second over it
        publish(topic, numbered("m", 0, 10));
        List<Message<byte[]>> ofOne = drain(one, false), ofTwo = drain(two, false);
        same("messages of the active and the other", List.of(0, 10), IntStream.of(ofOne.size(), ofTwo.size()).sorted().boxed().toList());
        Consumer<byte[]> active = ofOne.isEmpty() ? two : one, standby = ofOne.isEmpty() ? one : two;
        for (Message<byte[]> m : (ofOne.isEmpty() ? ofTwo : ofOne).subList(0, 4)) active.acknowledge(m);
        settles("backlog", 6, () -> backlog(topic));
        active.close();
        same("taken over", numbered("m", 4, 10), texts(take(standby, 6, true)));
    }

    void keyShared(String topic) throws Exception {
        List<Consumer<byte[]>> consumers = new ArrayList<>();
        for (int i = 0; i < 3; i++) consumers.add(consumer(topic, SubscriptionType.Key_Shared).consumerName("c" + i).subscribe());
        try (Producer<byte[]> p = client.newProducer().topic(topic).enableBatching(false).create()) {
            for (int i = 0; i < 90; i++) p.newMessage().key("key-" + i % 30).value(("" + i).getBytes()).send();
        }
        Map<String, String> owner = new HashMap<>();
        Map<String, Integer> last = new HashMap<>();
        int got = 0;
        for (Consumer<byte[]> c : consumers) {
            for (Message<byte[]> m : drain(c, true)) {
                owner.putIfAbsent(m.getKey(), c.getConsumerName());
                same("consumer of " + m.getKey(), owner.get(m.getKey()), c.getConsumerName());
                int number = Integer.parseInt(text(m));
                same("order within " + m.getKey(), true, last.getOrDefault(m.getKey(), -1) < number);
                last.put(m.getKey(), number);
                got++;
            }
        }
        same("messages", 90, got);
        same("consumers with work", Set.of("c0", "c1", "c2"), owner.values().stream().collect(Collectors.toSet()));
    }

    void positions(String topic) throws Exception {
        publish(topic, List.of("before"));
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Exclusive).subscriptionInitialPosition(SubscriptionInitialPosition.Latest).subscribe();
        publish(topic, List.of("after"));
        same("from the latest", List.of("after"), texts(take(c, 1, true)));
        c.unsubscribe();
        same("backlogs left", -1L, backlog(topic));
    }

    void producerNames(String topic) throws Exception {
        client.newProducer().topic(topic).producerName("meter").create();
        try (PulsarClient other = connect()) {
            refused("second producer", PulsarClientException.ProducerBusyException.class, () -> other.newProducer().topic(topic).producerName("meter").create());
        }
    }

    void unload(String topic) throws Exception {
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Exclusive).subscribe();
        Producer<byte[]> p = client.newProducer().topic(topic).enableBatching(false).create();
        p.send("before".getBytes());
        take(c, 1, true);
        settles("backlog", 0, () -> backlog(topic));
        same("status of unload", 204, call("PUT", topic + "/unload").statusCode());
        p.send("after".getBytes());
        same("came after", List.of("after"), texts(take(c, 1, true)));
    }
}
