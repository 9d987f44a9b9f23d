import java.io.BufferedReader;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.BooleanSupplier;
import java.util.regex.*;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.pulsar.client.api.*;

/**
 * What BabelQueue's Java transport does: jobs in JSON envelopes that properties tell of, on a Shared subscription where
 * what fails is negatively acknowledged, until the client itself moves it to .dlq.
 *
 * As a program of its own, Babel pulsar://HOST:PORT QUEUE, it is one worker to be ended from outside: it prints a line
 * when it begins a job and one when it has done it, and stays in a job that says so.
 */
class Babel extends Broker {
    static final String JOB = "urn:babel:meter:read", NAME = "babelqueue";
    static final int NACK_MILLIS = 100;

    Babel(String url, String admin) throws PulsarClientException { super(url, admin); }

    void addTo(Map<String, Conform.Body> checks) {
        checks.put("BabelQueue: a job arrives as it was published, and its properties tell of it", this::envelope);
        checks.put("BabelQueue: a failing job comes again, its redelivery count as attempts", this::failing);
        checks.put("BabelQueue: the larger of bq-attempts and the redelivery count is told", this::larger);
        checks.put("BabelQueue: a job published again with bq-attempts counted up, then in .dlq", this::republished);
        checks.put("BabelQueue: after the last attempt the client moves a job to .dlq, whole", this::dead);
        checks.put("BabelQueue: delayed jobs, none early, none of them in the way", this::delayed);
        checks.put("BabelQueue: poison ends in .dlq as it came, and does not stop the rest", this::poison);
        checks.put("BabelQueue: jobs that nobody knows, with somebody to tell and without", this::unknown);
        checks.put("BabelQueue: two workers share a queue, each job once, and one alone goes on", this::two);
        checks.put("BabelQueue: a worker closed, and one killed, in the middle of a job", this::restart);
    }

    /** The fields of an envelope that the checks look at; data is a number. */
    record Envelope(String job, String trace, int data, String id, String queue, int attempts) {
        static final Pattern BODY = Pattern.compile("\\{\"job\":\"([^\"]*)\",\"trace_id\":\"([^\"]*)\",\"data\":\\{\"n\":(\\d+),\"unit\":\"°C\"},"
            + "\"meta\":\\{\"id\":\"([^\"]*)\",\"queue\":\"([^\"]*)\",\"lang\":\"java\",\"schema_version\":1,\"created_at\":\\d+},"
            + "\"attempts\":(\\d+)}");

        static Envelope make(String job, int data, String queue) {
            return new Envelope(job, "trace-" + data, data, UUID.randomUUID().toString(), queue, 0);
        }

        /** The envelope of a body, or null if it is none. */
        static Envelope of(String body) {
            Matcher m = BODY.matcher(body);
            if (!m.matches()) return null;
            return new Envelope(m.group(1), m.group(2), Integer.parseInt(m.group(3)), m.group(4), m.group(5), Integer.parseInt(m.group(6)));
        }

        Envelope with(int attempts) { return new Envelope(job, trace, data, id, queue, attempts); }

        String body() {
            return String.format(Locale.ROOT, "{\"job\":\"%s\",\"trace_id\":\"%s\",\"data\":{\"n\":%d,\"unit\":\"°C\"},"
                + "\"meta\":{\"id\":\"%s\",\"queue\":\"%s\",\"lang\":\"java\",\"schema_version\":1,\"created_at\":%d},\"attempts\":%d}",
                job, trace, data, id, queue, System.currentTimeMillis(), attempts);
        }

        Map<String, String> properties() {
            return Map.of("bq-job", job, "bq-trace-id", trace, "bq-message-id", id, "bq-schema-version", "1", "bq-source-lang", "java",
                "bq-attempts", "" + attempts);
        }
    }

    interface Handler { void handle(Envelope e) throws Exception; }

    /** One consumer with its handlers, settling as BabelQueue does: acknowledged when done, negatively when not. */
    static class Worker {
        final Consumer<byte[]> consumer;
        final Map<String, Handler> handlers = new HashMap<>();
        final List<String> errors = new ArrayList<>();
        Handler unknown;

        Worker(ConsumerBuilder<byte[]> options, Handler handler) throws PulsarClientException {
            consumer = options.subscribe();
            handlers.put(JOB, handler);
        }

        boolean poll(int millis) throws PulsarClientException {
            Message<byte[]> m = consumer.receive(millis, TimeUnit.MILLISECONDS);
            if (m == null) return false;
            Envelope e = Envelope.of(text(m));
            try {
                if (e == null) throw new Exception("no envelope");
                e = e.with(Math.max(e.attempts(), m.getRedeliveryCount()));
                Handler h = handlers.getOrDefault(e.job(), unknown);
                if (h == null) throw new Exception("unknown " + e.job());
                h.handle(e);
            } catch (Exception error) {
                errors.add(error.getMessage());
                consumer.negativeAcknowledge(m);
                return true;
            }
            consumer.acknowledge(m);
            return true;
        }

        void work(int count) throws PulsarClientException {
            for (int i = 0; i < count; i++) same("message " + i + " of " + count, true, poll(10_000));
        }

        void run(BooleanSupplier on) {
            try {
                while (on.getAsBoolean()) poll(100);
            } catch (PulsarClientException e) {
                errors.add(e.toString());
            }
        }
    }

    static ConsumerBuilder<byte[]> options(PulsarClient c, String queue) {
        return c.newConsumer().topic(queue).subscriptionName(NAME).subscriptionType(SubscriptionType.Shared)
            .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
            .negativeAckRedeliveryDelay(NACK_MILLIS, TimeUnit.MILLISECONDS);
    }

    /** Options of a worker whose messages the client moves to .dlq after so many redeliveries. */
    ConsumerBuilder<byte[]> mortal(String queue, int redeliveries) {
        return options(client, queue).deadLetterPolicy(DeadLetterPolicy.builder().maxRedeliverCount(redeliveries)
            .deadLetterTopic(queue + ".dlq").initialSubscriptionName(NAME).build());
    }

    static Envelope send(Producer<byte[]> p, Envelope e, long delay) throws PulsarClientException {
        TypedMessageBuilder<byte[]> m = p.newMessage().value(e.body().getBytes(StandardCharsets.UTF_8)).properties(e.properties());
        if (delay > 0) m.property("bq-delay", "" + delay).deliverAfter(delay, TimeUnit.MILLISECONDS);
        m.send();
        return e;
    }

    Producer<byte[]> producer(String queue) throws PulsarClientException { return client.newProducer().topic(queue).create(); }

    long backlogOf(String queue) {
        Matcher m = Pattern.compile("\"" + NAME + "\"\\s*:.*?\"msgBacklog\"\\s*:\\s*(\\d+)", Pattern.DOTALL).matcher(stats(queue));
        return m.find() ? Long.parseLong(m.group(1)) : -1;
    }

    void emptied(String queue) throws InterruptedException { settles("backlog of " + queue, 0, () -> backlogOf(queue)); }

    void envelope(String topic) throws Exception {
        Consumer<byte[]> witness = consumer(topic, SubscriptionType.Exclusive).subscribe();
        List<Envelope> seen = new ArrayList<>();
        Worker w = new Worker(options(client, topic), seen::add);
        Envelope sent = send(producer(topic), Envelope.make(JOB, 1, topic), 0);
        w.work(1);
        Message<byte[]> m = take(witness, 1, true).get(0);
        same("properties", sent.properties(), m.getProperties());
        same("body", sent, Envelope.of(text(m)));
        same("what the handler had", List.of(sent), seen);
        same("errors", List.of(), w.errors);
        emptied(topic);
    }

    void failing(String topic) throws Exception {
        List<String> seen = new ArrayList<>();
        Worker w = new Worker(options(client, topic), e -> {
            seen.add(e.data() + ":" + e.attempts());
            if (e.data() == 1 && e.attempts() < 3) throw new Exception("not yet");
        });
        Producer<byte[]> p = producer(topic);
        for (int n = 0; n < 3; n++) send(p, Envelope.make(JOB, n, topic), 0);
        w.work(6);
        same("attempts", List.of("0:0", "1:0", "1:1", "1:2", "1:3", "2:0"), sorted(seen));
        same("errors", List.of("not yet", "not yet", "not yet"), w.errors);
        emptied(topic);
        nothingMore(w.consumer, 2 * NACK_MILLIS);
    }

    void larger(String topic) throws Exception {
        List<Integer> seen = new ArrayList<>();
        Worker w = new Worker(options(client, topic), e -> {
            seen.add(e.attempts());
            if (seen.size() < 4) throw new Exception("not yet");
        });
        send(producer(topic), Envelope.make(JOB, 1, topic).with(2), 0);
        w.work(4);
        same("attempts", List.of(2, 2, 2, 3), seen);
        emptied(topic);
    }

    void republished(String topic) throws Exception {
        Consumer<byte[]> witness = consumer(topic, SubscriptionType.Exclusive).subscribe();
        Consumer<byte[]> letters = consumer(topic + ".dlq", SubscriptionType.Exclusive).subscribe();
        Producer<byte[]> p = producer(topic), dead = producer(topic + ".dlq");
        List<Integer> seen = new ArrayList<>();
        Worker w = new Worker(options(client, topic), e -> {
            seen.add(e.attempts());
            send(e.attempts() < 2 ? p : dead, e.with(e.attempts() + 1), 0);
        });
        Envelope sent = send(p, Envelope.make(JOB, 1, topic), 0);
        w.work(3);
        same("attempts", List.of(0, 1, 2), seen);
        List<Message<byte[]>> all = take(witness, 3, true);
        all.addAll(take(letters, 1, true));
        same("bodies", IntStream.range(0, 4).mapToObj(sent::with).toList(), all.stream().map(m -> Envelope.of(text(m))).toList());
        same("properties", IntStream.range(0, 4).mapToObj(n -> sent.with(n).properties()).toList(),
            all.stream().map(Message::getProperties).toList());
        emptied(topic);
        nothingMore(letters, 300);
    }

    void dead(String topic) throws Exception {
        List<Integer> seen = new ArrayList<>();
        Worker w = new Worker(mortal(topic, 2), e -> {
            seen.add(e.attempts());
            throw new Exception("broken");
        });
        Producer<byte[]> p = producer(topic);
        Envelope sent = Envelope.make(JOB, 1, topic);
        MessageId id = p.newMessage().key("k").value(sent.body().getBytes(StandardCharsets.UTF_8)).properties(sent.properties()).send();
        w.work(3);
        nothingMore(w.consumer, 2 * NACK_MILLIS);
        same("attempts", List.of(0, 1, 2), seen);
        emptied(topic);
        Consumer<byte[]> letters = options(client, topic + ".dlq").subscribe(); // a subscription that the client has begun
        Message<byte[]> m = take(letters, 1, true).get(0);
        Map<String, String> want = new TreeMap<>(sent.properties());
        want.putAll(Map.of("REAL_TOPIC", "persistent://public/default/" + topic, "REAL_SUBSCRIPTION", NAME,
            "ORIGIN_MESSAGE_ID", id.toString(), "ORIGIN_MESSAGE_IDY_TIME", id.toString())); // both names are the client's
        same("properties", want, new TreeMap<>(m.getProperties()));
        same("body and key", Arrays.asList(sent, "k"), Arrays.asList(Envelope.of(text(m)), m.getKey()));
        emptied(topic + ".dlq");
    }

    void delayed(String topic) throws Exception {
        List<String> first = new ArrayList<>(), again = new ArrayList<>(), early = new ArrayList<>();
        Map<Integer, Long> sent = new HashMap<>();
        Worker w = new Worker(options(client, topic), e -> {
            long after = System.currentTimeMillis() - sent.get(e.data());
            if (after < e.data()) early.add(e.data() + " after " + after);
            (e.attempts() == 0 ? first : again).add(e.data() + ":" + e.attempts());
            if (e.data() == 600 && e.attempts() == 0) throw new Exception("not yet");
        });
        Producer<byte[]> p = producer(topic);
        for (int delay : new int[] {2000, 600, 0}) {
            sent.put(delay, System.currentTimeMillis());
            send(p, Envelope.make(JOB, delay, topic), delay);
        }
        same("backlog before they are due", 3L, backlogOf(topic));
        w.work(4);
        same("early", List.of(), early);
        same("order, and what came again", List.of("0:0", "600:0", "2000:0", "600:1"), Stream.of(first, again).flatMap(List::stream).toList());
        emptied(topic);
    }

    void poison(String topic) throws Exception {
        Consumer<byte[]> letters = consumer(topic + ".dlq", SubscriptionType.Exclusive).subscribe();
        List<Integer> seen = new ArrayList<>();
        Worker w = new Worker(mortal(topic, 1), e -> seen.add(e.data()));
        Producer<byte[]> p = producer(topic);
        List<byte[]> poison = List.of("not JSON".getBytes(), new byte[] {-1, -2, 0, '{'}, "{\"data\":{}}".getBytes(), new byte[0]);
        for (int n = 0; n < poison.size(); n++) {
            send(p, Envelope.make(JOB, n, topic), 0);
            p.newMessage().value(poison.get(n)).property("bq-job", JOB).send();
        }
        w.work(3 * poison.size());
        same("jobs done", List.of(0, 1, 2, 3), seen);
        same("errors", Collections.nCopies(2 * poison.size(), "no envelope"), w.errors);
        List<String> got = new ArrayList<>();
        for (Message<byte[]> m : take(letters, poison.size(), true)) got.add(Arrays.toString(m.getData()) + m.getProperty("bq-job"));
        same("letters", sorted(poison.stream().map(b -> Arrays.toString(b) + JOB).toList()), sorted(got));
        emptied(topic);
        nothingMore(letters, 300);
    }

    void unknown(String topic) throws Exception {
        List<String> told = new ArrayList<>();
        Worker w = new Worker(mortal(topic, 1), e -> told.add("known " + e.data()));
        Producer<byte[]> p = producer(topic);
        send(p, Envelope.make("urn:babel:meter:other", 1, topic), 0);
        send(p, Envelope.make(JOB, 2, topic), 0);
        w.work(3);
        nothingMore(w.consumer, 2 * NACK_MILLIS);
        same("errors", List.of("unknown urn:babel:meter:other", "unknown urn:babel:meter:other"), w.errors);
        Message<byte[]> letter = take(options(client, topic + ".dlq").subscribe(), 1, true).get(0);
        same("in .dlq", "urn:babel:meter:other", letter.getProperty("bq-job"));
        w.unknown = e -> told.add("unknown " + e.data());
        send(p, Envelope.make("urn:babel:meter:other", 3, topic), 0);
        w.work(1);
        same("told", List.of("known 2", "unknown 3"), told);
        emptied(topic);
        emptied(topic + ".dlq");
    }

    void two(String topic) throws Exception {
        Map<String, Queue<Integer>> done = Map.of("a", new ConcurrentLinkedQueue<>(), "b", new ConcurrentLinkedQueue<>());
        Set<String> working = ConcurrentHashMap.newKeySet();
        Map<String, Thread> threads = new TreeMap<>();
        Map<String, PulsarClient> clients = new TreeMap<>();
        for (String name : done.keySet()) {
            clients.put(name, connect());
            Worker w = new Worker(options(clients.get(name), topic).receiverQueueSize(4), e -> {
                Thread.sleep(10);
                done.get(name).add(e.data());
            });
            working.add(name);
            threads.put(name, new Thread(() -> w.run(() -> working.contains(name))));
        }
        Producer<byte[]> p = producer(topic);
        for (int n = 0; n < 40; n++) send(p, Envelope.make(JOB, n, topic), 0);
        threads.values().forEach(Thread::start);
        settles("jobs done", 40, () -> (long) done.get("a").size() + done.get("b").size());
        same("each once", IntStream.range(0, 40).boxed().toList(), done.values().stream().flatMap(Queue::stream).sorted().toList());
        same("both had work", true, !done.get("a").isEmpty() && !done.get("b").isEmpty());
        working.remove("a");
        threads.get("a").join(10_000);
        clients.get("a").closeAsync(); // it takes its threads two seconds to end, which nobody needs to wait for
        done.get("b").clear();
        for (int n = 40; n < 50; n++) send(p, Envelope.make(JOB, n, topic), 0);
        settles("jobs done by the other", 10, () -> (long) done.get("b").size());
        same("each once, in order", IntStream.range(40, 50).boxed().toList(), List.copyOf(done.get("b")));
        working.remove("b");
        threads.get("b").join(10_000);
        clients.get("b").closeAsync();
        emptied(topic);
    }

    void restart(String topic) throws Exception {
        Producer<byte[]> p = producer(topic);
        for (int n = 0; n < 10; n++) send(p, Envelope.make(JOB, n, topic), 0);
        List<String> seen = new ArrayList<>();
        PulsarClient first = connect();
        Worker w = new Worker(options(first, topic), e -> seen.add(e.data() + ":" + e.attempts()));
        w.work(3);
        same("taken, not done", 3, Envelope.of(text(take(w.consumer, 1, false).get(0))).data());
        w.consumer.close();
        first.closeAsync();
        same("of the killed one", List.of("done 3", "done 4", "done 5", "begin 6"), killed(topic));
        Worker last = new Worker(options(client, topic), e -> seen.add(e.data() + ":" + e.attempts()));
        last.work(4);
        same("done by the first and the last, all at the first attempt", Stream.of(0, 1, 2, 6, 7, 8, 9).map(n -> n + ":0").toList(), seen);
        emptied(topic);
    }

    /** What a worker in a process of its own has to say until it is killed in job 6, without the beginnings of the jobs that it did. */
    List<String> killed(String topic) throws Exception {
        Process worker = new ProcessBuilder(System.getProperty("java.home") + "/bin/java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp",
            System.getProperty("java.class.path"), "Babel", url, topic).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        List<String> lines = new ArrayList<>();
        try (BufferedReader out = worker.inputReader()) {
            for (String line; !lines.contains("begin 6") && (line = out.readLine()) != null; ) {
                if (line.startsWith("done") || line.equals("begin 6")) lines.add(line);
            }
            settles("backlog when what it has done is acknowledged", 4, () -> backlogOf(topic));
        } finally {
            worker.destroyForcibly().waitFor(10, TimeUnit.SECONDS);
        }
        return lines;
    }

    public static void main(String[] args) throws Exception {
        PulsarClient client = PulsarClient.builder().serviceUrl(args[0]).build();
        new Worker(options(client, args[1]), e -> {
            System.out.println("begin " + e.data());
            if (e.data() == 6) Thread.sleep(30_000);
            System.out.println("done " + e.data());
        }).run(() -> true);
    }
}
