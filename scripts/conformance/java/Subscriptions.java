import java.util.*;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.pulsar.client.api.*;
import org.apache.pulsar.common.util.Murmur3_32Hash;

/** What the Java client does with subscriptions beyond the plain cases. */
class Subscriptions extends Broker {
    Subscriptions(String url, String admin) throws PulsarClientException { super(url, admin); }

    void addTo(Map<String, Conform.Body> checks) {
        checks.put("acknowledged to the middle of a batch, singly and cumulatively: what is left comes to the next consumer", this::batchesHold);
        checks.put("Shared: lower priority levels have what the higher ones cannot take", this::priorities);
        checks.put("Failover shares partitions out, and tells each consumer of its part", this::failoverPartitions);
        checks.put("Key_Shared: a key that moves waits until its old owner has nothing of it", this::movedKeys);
        checks.put("Key_Shared sticky: each has its ranges, overlapping ones are refused", this::sticky);
        checks.put("consumed again later: by the retry topic, then to the dead letters, whose subscription is made with them", this::retries);
        checks.put("unsubscribe: refused while others are there, unless forced", this::forced);
        checks.put("statistics tell of each consumer", this::statistics);
        checks.put("messages expired by request, by age and up to an id", this::expired);
        checks.put("a consumer without a queue has only what it asks for", this::zeroQueue);
        checks.put("a non-durable subscription ends with its consumer", this::nonDurable);
        checks.put("redelivery asked for by an Exclusive consumer begins at the oldest, each message once", this::epochs);
    }

    void batchesHold(String topic) throws Exception {
        for (boolean cumulative : new boolean[] {false, true}) {
            String t = topic + "-" + cumulative;
            ConsumerBuilder<byte[]> open = consumer(t, SubscriptionType.Exclusive).enableBatchIndexAcknowledgment(true).isAckReceiptEnabled(true);
            Consumer<byte[]> c = open.subscribe();
            publishBatches(client.newProducer().topic(t), numbered("m", 0, 20), 10);
            List<Message<byte[]>> got = take(c, 20, false);
            if (cumulative) c.acknowledgeCumulative(got.get(13)); else for (int i : new int[] {2, 13}) c.acknowledge(got.get(i));
            List<String> want = new ArrayList<>(numbered("m", cumulative ? 14 : 0, 20));
            if (!cumulative) want.removeAll(List.of("m-2", "m-13"));
            c.close();
            c = open.subscribe();
            same("for the next consumer", want, texts(take(c, want.size(), true)));
            nothingMore(c, 200);
            settles("backlog", 0, () -> backlog(t));
        }
    }

    void priorities(String topic) throws Exception {
        Consumer<byte[]> low = consumer(topic, SubscriptionType.Shared).priorityLevel(1).receiverQueueSize(100).subscribe();
        Consumer<byte[]> high = consumer(topic, SubscriptionType.Shared).priorityLevel(0).receiverQueueSize(5).subscribe();
        publish(topic, numbered("m", 0, 12));
        same("of the lower level", numbered("m", 5, 12), texts(take(low, 7, true)));
        nothingMore(low, 200);
        same("of the higher level", numbered("m", 0, 5), texts(take(high, 5, true)));
        publish(topic, List.of("more"));
        same("when there is room again", List.of("more"), texts(take(high, 1, true)));
    }

    /** Notes which partitions its consumer is the active one of. */
    static class Part implements ConsumerEventListener {
        final Set<Integer> active = new ConcurrentSkipListSet<>();

        @Override public void becameActive(Consumer<?> c, int partition) { active.add(partition); }

        @Override public void becameInactive(Consumer<?> c, int partition) { active.remove(partition); }
    }

    void failoverPartitions(String topic) throws Exception {
        done("PUT", topic + "/partitions", "4");
        Part partOfA = new Part(), partOfB = new Part();
        Consumer<byte[]> a = consumer(topic, SubscriptionType.Failover).consumerName("a").consumerEventListener(partOfA).subscribe();
        settles("partitions of one alone", 4, () -> (long) partOfA.active.size());
        Consumer<byte[]> b = consumer(topic, SubscriptionType.Failover).consumerName("b").consumerEventListener(partOfB).subscribe();
        settles("partitions of the second", 2, () -> (long) partOfB.active.size());
        settles("partitions left to the first", 2, () -> (long) partOfA.active.size());
        same("of the first", Set.of(0, 2), partOfA.active);
        same("of the second", Set.of(1, 3), partOfB.active);
        for (int i = 0; i < 4; i++) publish(topic + "-partition-" + i, List.of("to " + i));
        same("messages of the first", List.of("to 0", "to 2"), sorted(texts(take(a, 2, true))));
        same("messages of the second", List.of("to 1", "to 3"), sorted(texts(take(b, 2, false))));
        b.close();
        settles("partitions when the second has left", 4, () -> (long) partOfA.active.size());
        same("messages that it left", List.of("to 1", "to 3"), sorted(texts(take(a, 2, true))));
    }

    void publishKeys(String topic, int from, int to) throws Exception {
        try (Producer<byte[]> p = client.newProducer().topic(topic).enableBatching(false).create()) {
            for (int i = from; i < to; i++) p.newMessage().key("key-" + i % 20).value(("" + i).getBytes()).send();
        }
    }

    void movedKeys(String topic) throws Exception {
        Consumer<byte[]> old = consumer(topic, SubscriptionType.Key_Shared).consumerName("old").subscribe();
        publishKeys(topic, 0, 20);
        List<Message<byte[]>> held = take(old, 20, false);
        Consumer<byte[]> young = consumer(topic, SubscriptionType.Key_Shared).consumerName("young").subscribe();
        publishKeys(topic, 20, 40);
        nothingMore(young, 500);
        for (Message<byte[]> m : held) old.acknowledge(m);
        List<Message<byte[]>> moved = drain(young, true), stayed = drain(old, true);
        same("keys that moved, and that did not", true, !moved.isEmpty() && !stayed.isEmpty());
        same("together", 20, moved.size() + stayed.size());
        for (List<Message<byte[]>> all : List.of(moved, stayed)) {
            List<Integer> numbers = all.stream().map(m -> Integer.parseInt(text(m))).toList();
            same("order", numbers.stream().sorted().toList(), numbers);
        }
    }

    void sticky(String topic) throws Exception {
        Consumer<byte[]> low = ranged(topic, Range.of(0, 20_000), Range.of(40_000, 65_535)), middle = ranged(topic, Range.of(20_001, 39_999));
        refused("a range that overlaps", PulsarClientException.class, () -> ranged(topic, Range.of(39_000, 41_000)));
        publishKeys(topic, 0, 60);
        List<Message<byte[]>> ofLow = drain(low, true), ofMiddle = drain(middle, true);
        same("together", 60, ofLow.size() + ofMiddle.size());
        for (Message<byte[]> m : ofLow) same("slot of " + m.getKey() + " is in the middle", false, inMiddle(m.getKey()));
        for (Message<byte[]> m : ofMiddle) same("slot of " + m.getKey() + " is in the middle", true, inMiddle(m.getKey()));
        middle.close();
        publishKeys(topic, 0, 20);
        same("while nobody has the middle", Set.of(false), drain(low, true).stream().map(m -> inMiddle(m.getKey())).collect(Collectors.toSet()));
    }

    Consumer<byte[]> ranged(String topic, Range... ranges) throws PulsarClientException {
        return consumer(topic, SubscriptionType.Key_Shared).keySharedPolicy(KeySharedPolicy.stickyHashRange().ranges(ranges)).subscribe();
    }

    static boolean inMiddle(String key) {
        int slot = Murmur3_32Hash.getInstance().makeHash(key.getBytes()) % 65_536;
        return slot > 20_000 && slot < 40_000;
    }

    void retries(String topic) throws Exception {
        String dead = topic + "-dead";
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Shared).enableRetry(true).deadLetterPolicy(DeadLetterPolicy.builder()
            .maxRedeliverCount(2).retryLetterTopic(topic + "-retry").deadLetterTopic(dead).initialSubscriptionName("keeps").build()).subscribe();
        publish(topic, List.of("job"));
        for (int times = 0; times < 3; times++) {
            Message<byte[]> m = take(c, 1, false).get(0);
            same("text", "job", text(m));
            same("times consumed again", times == 0 ? null : "" + times, m.getProperty("RECONSUMETIMES"));
            long begin = System.nanoTime();
            c.reconsumeLater(m, 300, TimeUnit.MILLISECONDS);
            if (times == 2) break;
            nothingMore(c, 250 - (int) ((System.nanoTime() - begin) / 1_000_000));
        }
        settles("letters kept by the subscription", 1, () -> call("GET", dead + "/stats").statusCode() == 200 ? backlog(dead) : -1);
        Consumer<byte[]> letters = client.newConsumer().topic(dead).subscriptionName("keeps").subscribe();
        Message<byte[]> letter = take(letters, 1, true).get(0);
        same("dead letter", "job", text(letter));
        same("its topic", "persistent://public/default/" + topic, letter.getProperty("REAL_TOPIC"));
        nothingMore(c, 400);
        settles("backlog", 0, () -> backlog(topic));
    }

    void forced(String topic) throws Exception {
        Consumer<byte[]> one = consumer(topic, SubscriptionType.Shared).subscribe();
        PulsarClient elsewhere = connect();
        elsewhere.newConsumer().topic(topic).subscriptionName("sub").subscriptionType(SubscriptionType.Shared).subscribe();
        publish(topic, List.of("open"));
        refused("while another is there", PulsarClientException.class, () -> { one.unsubscribe(); return null; });
        same("still there", 1L, backlog(topic));
        one.unsubscribe(true);
        // The other one comes back and makes the subscription again, at the latest.
        settles("what the new one has to give", 0, () -> backlog(topic));
        elsewhere.close();
    }

    static long figure(String stats, String name) {
        Matcher m = Pattern.compile("\"" + name + "\"\\s*:\\s*(\\d+)").matcher(stats);
        return m.find() ? Long.parseLong(m.group(1)) : -1;
    }

    void statistics(String topic) throws Exception {
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Shared).consumerName("meter").receiverQueueSize(10).property("unit", "7").subscribe();
        publish(topic, numbered("m", 0, 4));
        List<Message<byte[]>> got = take(c, 4, false);
        c.acknowledge(got.get(0));
        settles("unacknowledged", 3, () -> figure(stats(topic).replaceFirst(".*\"consumers\"", ""), "unackedMessages"));
        String ofConsumer = stats(topic).replaceAll("\\s", "").replaceFirst(".*\"consumers\"", "");
        same("room left", 6L, figure(ofConsumer, "availablePermits"));
        same("messages given", 4L, figure(ofConsumer, "msgOutCounter"));
        same("name", true, ofConsumer.contains("\"consumerName\":\"meter\""));
        same("properties", true, ofConsumer.contains("\"metadata\":{\"unit\":\"7\"}"));
    }

    void expired(String topic) throws Exception {
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Shared).subscribe();
        c.close();
        publish(topic, numbered("old", 0, 3));
        Thread.sleep(2100);
        List<MessageId> ids = publish(topic, numbered("new", 0, 4));
        done("POST", topic + "/subscription/sub/expireMessages/2", null);
        settles("backlog when the old ones have expired", 4, () -> backlog(topic));
        MessageIdAdv id = (MessageIdAdv) ids.get(1);
        String upTo = "{\"ledgerId\":" + id.getLedgerId() + ",\"entryId\":" + id.getEntryId() + ",\"partitionIndex\":-1}";
        // A real Pulsar takes a moment to be done with the first request, and answers 409 until then.
        settles("expiry up to an id", 204, () -> (long) ask("POST", "/admin/v2/persistent/public/default/" + topic + "/subscription/sub/expireMessages", upTo));
        settles("backlog after expiry up to an id", 2, () -> backlog(topic));
        same("left", numbered("new", 2, 4), texts(take(consumer(topic, SubscriptionType.Shared).subscribe(), 2, true)));
    }

    void zeroQueue(String topic) throws Exception {
        Consumer<byte[]> idle = consumer(topic, SubscriptionType.Shared).receiverQueueSize(0).subscribe();
        Consumer<byte[]> busy = consumer(topic, SubscriptionType.Shared).receiverQueueSize(0).subscribe();
        publish(topic, numbered("m", 0, 5));
        for (String want : numbered("m", 0, 4)) same("of the one that asks", want, askFor(busy));
        same("of the other, when it asks", "m-4", askFor(idle));
        settles("backlog", 0, () -> backlog(topic));
    }

    static String askFor(Consumer<byte[]> c) throws Exception {
        Message<byte[]> m = c.receiveAsync().get(10, TimeUnit.SECONDS);
        c.acknowledge(m);
        return text(m);
    }

    void nonDurable(String topic) throws Exception {
        publish(topic, numbered("m", 0, 3));
        ConsumerBuilder<byte[]> open = consumer(topic, SubscriptionType.Exclusive).subscriptionMode(SubscriptionMode.NonDurable);
        Consumer<byte[]> c = open.subscribe();
        same("from the earliest", numbered("m", 0, 3), texts(take(c, 3, true)));
        c.close();
        settles("backlogs left", -1, () -> backlog(topic));
        same("from the earliest again", numbered("m", 0, 3), texts(take(open.subscribe(), 3, true)));
    }

    void epochs(String topic) throws Exception {
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Exclusive).subscribe();
        publish(topic, numbered("m", 0, 10));
        for (int i = 0; i < 3; i++) {
            same("first ones", numbered("m", 0, 3), texts(take(c, 3, false)));
            c.redeliverUnacknowledgedMessages();
        }
        same("all, once", numbered("m", 0, 10), texts(take(c, 10, true)));
        nothingMore(c, 200);
    }
}
