import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.util.*;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.*;
import org.apache.pulsar.client.impl.ProducerBuilderImpl;

/** What the Java client does with producers beyond the plain cases. */
class Producing extends Broker {
    Producing(String url, String admin) throws PulsarClientException { super(url, admin); }

    void addTo(Map<String, Conform.Body> checks) {
        checks.put("a producer with exclusive access: others are refused, wait, or take over", this::exclusive);
        checks.put("deduplication: a sequence id counts once, also for the producer that comes after", this::repeats);
        checks.put("a message larger than the broker takes arrives in chunks, and is sought", this::chunks);
        checks.put("encrypted messages, single, in batches and in chunks, are read by who has the key", this::encrypted);
        checks.put("delayed messages: none early, the others are not held up", this::delayed);
        checks.put("a producer makes the subscription that it names", this::initialSubscription);
        checks.put("a producer above the publish rate is held back, in order and without an error", this::throttled);
        checks.put("where encryption is required who does not encrypt is refused", this::encryptionRequired);
        checks.put("types of subscriptions that are not enabled are refused, others are not", this::typesEnabled);
        checks.put("topics are made with partitions, or not at all, as the namespace says", this::autoCreation);
    }

    ProducerBuilder<byte[]> producer(String topic) { return client.newProducer().topic(topic).enableBatching(false); }

    void exclusive(String topic) throws Exception {
        PulsarClient own = connect(); // a real Pulsar hangs up on who goes on with a fenced producer
        Producer<byte[]> first = producer(topic).accessMode(ProducerAccessMode.Exclusive).create();
        refused("a second exclusive one", PulsarClientException.ProducerFencedException.class,
            () -> producer(topic).accessMode(ProducerAccessMode.Exclusive).create());
        refused("a shared one", PulsarClientException.ProducerBusyException.class, () -> producer(topic).create());
        CompletableFuture<Producer<byte[]>> waiting = own.newProducer().topic(topic).enableBatching(false).accessMode(ProducerAccessMode.WaitForExclusive)
            .sendTimeout(1, TimeUnit.SECONDS).createAsync();
        Thread.sleep(200);
        same("has the waiting one been let in", false, waiting.isDone());
        first.send("first".getBytes());
        first.close();
        Producer<byte[]> second = waiting.get(10, TimeUnit.SECONDS);
        second.send("second".getBytes());
        Producer<byte[]> third = producer(topic).accessMode(ProducerAccessMode.ExclusiveWithFencing).create();
        third.send("third".getBytes());
        refused("the one that was fenced", PulsarClientException.class, () -> second.send("late".getBytes()));
        own.close();
        same("what is there", List.of("first", "second", "third"), texts(take(consumer(topic, SubscriptionType.Exclusive).subscribe(), 3, true)));
        third.close();
        Producer<byte[]> shared = producer(topic).create();
        refused("an exclusive one beside a shared one", PulsarClientException.class,
            () -> producer(topic).accessMode(ProducerAccessMode.Exclusive).create());
        shared.close();
    }

    void repeats(String topic) throws Exception {
        String t = namespace(topic, "deduplication", "true") + "t";
        Consumer<byte[]> c = consumer(t, SubscriptionType.Exclusive).isAckReceiptEnabled(true).subscribe();
        for (int round = 0; round < 3; round++) {
            if (round == 2) same("stored", numbered("m", 10, 13), texts(take(c, 3, true)));
            if (round == 2) same("unload", 204, ask("PUT", t.replace("://", "/").replace("persistent", "/admin/v2/persistent") + "/unload", null));
            try (Producer<byte[]> p = producer(t).producerName("meter").create()) {
                same("last sequence id", round == 0 ? -1L : 10L + round, p.getLastSequenceId());
                for (long id = 10; id < 12 + round; id++) p.newMessage().sequenceId(id).value(("m-" + id).getBytes()).send();
                same("last sequence id", 11L + round, p.getLastSequenceId());
            }
        }
        same("stored when the topic was unloaded", List.of("m-13"), texts(take(c, 1, true)));
        nothingMore(c, 200);
    }

    static byte[] noise(int size) {
        byte[] out = new byte[size];
        new Random(size).nextBytes(out);
        return out;
    }

    void chunks(String topic) throws Exception {
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Exclusive).subscribe();
        byte[] large = noise(3_500_000);
        List<MessageId> ids = new ArrayList<>();
        try (Producer<byte[]> p = producer(topic).enableChunking(true).create()) {
            ids.add(p.send("before".getBytes()));
            ids.add(p.newMessage().key("k").property("unit", "7").value(large).send());
            ids.add(p.send("after".getBytes()));
        }
        List<Message<byte[]>> got = take(c, 3, true);
        same("texts around", List.of("before", "after"), List.of(text(got.get(0)), text(got.get(2))));
        same("unchanged", true, Arrays.equals(large, got.get(1).getData()));
        same("key and property", List.of("k", "7"), List.of(got.get(1).getKey(), got.get(1).getProperty("unit")));
        same("id", ids.get(1), got.get(1).getMessageId());
        settles("backlog after acknowledging all", 0, () -> backlog(topic));
        try (Reader<byte[]> r = client.newReader().topic(topic).startMessageId(ids.get(1)).startMessageIdInclusive().create()) {
            same("read from it", true, Arrays.equals(large, r.readNext(10, TimeUnit.SECONDS).getData()));
            same("and then", "after", text(r.readNext(10, TimeUnit.SECONDS)));
        }
    }

    /** A pair of keys, known to producers and consumers by any name. */
    static class Keys implements CryptoKeyReader {
        final KeyPair pair;

        Keys() throws Exception {
            KeyPairGenerator g = KeyPairGenerator.getInstance("RSA");
            g.initialize(2048);
            pair = g.generateKeyPair();
        }

        static EncryptionKeyInfo pem(String kind, byte[] key) {
            String text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(key);
            return new EncryptionKeyInfo(("-----BEGIN " + kind + " KEY-----\n" + text + "\n-----END " + kind + " KEY-----\n").getBytes(), null);
        }

        @Override public EncryptionKeyInfo getPublicKey(String name, Map<String, String> about) { return pem("PUBLIC", pair.getPublic().getEncoded()); }

        @Override public EncryptionKeyInfo getPrivateKey(String name, Map<String, String> about) { return pem("PRIVATE", pair.getPrivate().getEncoded()); }
    }

    void encrypted(String topic) throws Exception {
        Keys keys = new Keys();
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Exclusive).cryptoKeyReader(keys).subscribe();
        try (Producer<byte[]> p = producer(topic).cryptoKeyReader(keys).addEncryptionKey("k").compressionType(CompressionType.LZ4).create()) {
            p.send("secret".getBytes());
        }
        // Closed before batches come: this client hangs up over encrypted ones that it may hand out as they are.
        try (Consumer<byte[]> keyless = consumer(topic, SubscriptionType.Exclusive).subscriptionName("keyless")
                .cryptoFailureAction(ConsumerCryptoFailureAction.CONSUME).subscribe()) {
            Message<byte[]> closed = take(keyless, 1, true).get(0);
            same("readable without the key", false, text(closed).contains("secret"));
            same("named keys", Set.of("k"), closed.getEncryptionCtx().get().getKeys().keySet());
        }
        publishBatches(client.newProducer().topic(topic).cryptoKeyReader(keys).addEncryptionKey("k"), numbered("m", 0, 10), 10);
        byte[] large = noise(2_000_000);
        try (Producer<byte[]> p = producer(topic).enableChunking(true).cryptoKeyReader(keys).addEncryptionKey("k").create()) { p.send(large); }
        List<String> want = new ArrayList<>(numbered("m", 0, 10));
        want.add(0, "secret");
        same("texts", want, texts(take(c, 11, true)));
        same("chunks", true, Arrays.equals(large, take(c, 1, true).get(0).getData()));
    }

    void delayed(String topic) throws Exception {
        Consumer<byte[]> c = consumer(topic, SubscriptionType.Shared).subscribe();
        Map<String, Long> due = new HashMap<>();
        try (Producer<byte[]> p = producer(topic).create()) {
            for (int millis : new int[] {1400, 1000, 1200}) {
                long at = System.currentTimeMillis() + millis;
                due.put("after " + millis, at);
                p.newMessage().deliverAt(at).value(("after " + millis).getBytes()).send();
            }
            p.send("at once".getBytes());
        }
        List<Message<byte[]>> got = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            got.addAll(take(c, 1, true));
            String text = text(got.get(i));
            same(text + " is early", false, System.currentTimeMillis() < due.getOrDefault(text, 0L));
        }
        same("not held up", "at once", text(got.get(0)));
        same("all", List.of("after 1000", "after 1200", "after 1400", "at once"), sorted(texts(got)));
    }

    static String rate(int messages) { return "{\"publishThrottlingRateInMsg\":" + messages + ",\"publishThrottlingRateInByte\":-1}"; }

    /** Sends all at once, and says how many seconds it took until the last receipt came. */
    static double seconds(Producer<byte[]> p, List<String> texts) throws Exception {
        long begin = System.nanoTime();
        List<CompletableFuture<MessageId>> sends = new ArrayList<>();
        for (String text : texts) sends.add(p.sendAsync(text.getBytes()));
        for (CompletableFuture<MessageId> f : sends) f.get(30, TimeUnit.SECONDS);
        return (System.nanoTime() - begin) / 1e9;
    }

    void throttled(String topic) throws Exception {
        String t = namespace(topic, "publishRate", rate(20)) + "t";
        PulsarClient own = connect(); // a real Pulsar does not read from this connection meanwhile
        Consumer<byte[]> c = consumer(t, SubscriptionType.Exclusive).subscribe();
        Producer<byte[]> p = own.newProducer().topic(t).enableBatching(false).create();
        double took = seconds(p, numbered("m", 0, 80));
        same("80 at 20 a second took " + took + " s, more than 2.6 and less than 4.5", true, took > 2.6 && took < 4.5);
        CompletableFuture<Double> rest = CompletableFuture.supplyAsync(() -> {
            try {
                return seconds(p, numbered("n", 0, 150));
            } catch (Exception e) {
                throw new Unexpected("the second part: " + e);
            }
        });
        Thread.sleep(500);
        same("no rate", 204, ask("POST", "/admin/v2/namespaces/public/" + topic + "/publishRate", rate(0)));
        took = rest.get(30, TimeUnit.SECONDS);
        same("150 took " + took + " s when the rate was gone, less than 5", true, took < 5);
        List<String> want = new ArrayList<>(numbered("m", 0, 80));
        want.addAll(numbered("n", 0, 150));
        same("what came", want, texts(take(c, 230, true)));
        own.close();
    }

    void encryptionRequired(String topic) throws Exception {
        String t = namespace(topic, "encryptionRequired", "true") + "t";
        Keys keys = new Keys();
        try (PulsarClient hasty = PulsarClient.builder().serviceUrl(url).operationTimeout(2, TimeUnit.SECONDS).build()) { // it tries again until then
            refused("a producer", PulsarClientException.class, () -> hasty.newProducer().topic(t).create());
        }
        try (Producer<byte[]> p = producer(t).cryptoKeyReader(keys).addEncryptionKey("k").create()) { p.send("secret".getBytes()); }
        same("what came", List.of("secret"), texts(take(consumer(t, SubscriptionType.Exclusive).cryptoKeyReader(keys).subscribe(), 1, true)));
    }

    void typesEnabled(String topic) throws Exception {
        // Where Exclusive ones are not enabled a real Pulsar cannot read its own topics, and loses this one by that.
        String t = namespace(topic, "subscriptionTypesEnabled", "[\"Exclusive\",\"Failover\"]") + "t";
        for (SubscriptionType type : List.of(SubscriptionType.Shared, SubscriptionType.Key_Shared)) {
            refused(type.name(), PulsarClientException.NotAllowedException.class, () -> consumer(t, type).subscribe());
        }
        publish(t, List.of("m"));
        same("what came", List.of("m"), texts(take(consumer(t, SubscriptionType.Failover).subscribe(), 1, true)));
    }

    void initialSubscription(String topic) throws Exception {
        try (Producer<byte[]> p = ((ProducerBuilderImpl<byte[]>) producer(topic)).initialSubscriptionName("sub").create()) {
            p.send("kept".getBytes());
        }
        same("backlog", 1L, backlog(topic));
        same("for who comes later", List.of("kept"), texts(take(client.newConsumer().topic(topic).subscriptionName("sub").subscribe(), 1, true)));
    }

    void autoCreation(String topic) throws Exception {
        String parts = namespace(topic + "-p", "autoTopicCreation",
            "{\"allowAutoTopicCreation\":true,\"topicType\":\"partitioned\",\"defaultNumPartitions\":3}") + "t";
        String none = namespace(topic + "-n", "autoTopicCreation", "{\"allowAutoTopicCreation\":false}") + "t";
        Consumer<byte[]> c = consumer(parts, SubscriptionType.Exclusive).subscribe();
        same("partitions", 3, client.getPartitionsForTopic(parts).get(10, TimeUnit.SECONDS).size());
        try (Producer<byte[]> p = producer(parts).messageRoutingMode(MessageRoutingMode.RoundRobinPartition).create()) {
            for (String text : numbered("m", 0, 6)) p.send(text.getBytes());
        }
        List<Message<byte[]>> got = take(c, 6, true);
        same("partitions that carry", 3L, got.stream().map(Message::getTopicName).distinct().count());
        refused("a producer where topics are not made", PulsarClientException.class, () -> producer(none).create());
        refused("a consumer where topics are not made", PulsarClientException.class, () -> consumer(none, SubscriptionType.Shared).subscribe());
    }
}
