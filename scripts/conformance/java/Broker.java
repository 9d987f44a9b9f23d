import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.apache.pulsar.client.api.*;

/** One broker under test, with the few things that every check does with it. */
class Broker {
    final String url, admin;
    final HttpClient http = HttpClient.newHttpClient();
    final PulsarClient client;

    Broker(String url, String admin) throws PulsarClientException {
        this.url = url;
        this.admin = admin;
        client = connect();
    }

    static class Unexpected extends RuntimeException {
        Unexpected(String what) { super(what); }
    }

    static void same(String what, Object want, Object got) {
        if (!Objects.equals(want, got)) throw new Unexpected(what + ": expected " + want + ", saw " + got);
    }

    static void refused(String what, Class<? extends Exception> error, Callable<?> call) {
        try {
            call.call();
        } catch (Exception e) {
            if (error.isInstance(e)) return;
            throw new Unexpected(what + ": expected " + error.getSimpleName() + ", saw " + e);
        }
        throw new Unexpected(what + ": expected a refusal, saw success");
    }

    PulsarClient connect() throws PulsarClientException {
        return PulsarClient.builder().serviceUrl(url).operationTimeout(15, TimeUnit.SECONDS).build();
    }

    ConsumerBuilder<byte[]> consumer(String topic, SubscriptionType type) {
        return client.newConsumer().topic(topic).subscriptionName("sub").subscriptionType(type)
            .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest);
    }

    List<MessageId> publish(String topic, List<String> texts) throws Exception {
        List<MessageId> ids = new ArrayList<>();
        try (Producer<byte[]> p = client.newProducer().topic(topic).enableBatching(false).create()) {
            for (String t : texts) ids.add(p.send(t.getBytes(StandardCharsets.UTF_8)));
        }
        return ids;
    }

    /** Sends the texts in batches of the given size, message i with key k(i % 3) and property n = i. */
    List<MessageId> publishBatches(ProducerBuilder<byte[]> builder, List<String> texts, int size) throws Exception {
        List<CompletableFuture<MessageId>> sends = new ArrayList<>();
        try (Producer<byte[]> p = builder.enableBatching(true).batchingMaxMessages(size)
                .batchingMaxPublishDelay(5, TimeUnit.SECONDS).create()) {
            for (int i = 0; i < texts.size(); i++) {
                sends.add(p.newMessage().key("k" + i % 3).property("n", "" + i)
                    .value(texts.get(i).getBytes(StandardCharsets.UTF_8)).sendAsync());
            }
            p.flush();
            List<MessageId> ids = new ArrayList<>();
            for (CompletableFuture<MessageId> f : sends) ids.add(f.get(15, TimeUnit.SECONDS));
            return ids;
        }
    }

    static List<Message<byte[]>> take(Consumer<byte[]> c, int count, boolean ack) throws Exception {
        List<Message<byte[]>> out = new ArrayList<>();
        while (out.size() < count) {
            Message<byte[]> m = c.receive(30, TimeUnit.SECONDS);
            if (m == null) throw new Unexpected("expected " + count + " messages, saw " + texts(out));
            if (ack) c.acknowledge(m);
            out.add(m);
        }
        return out;
    }

    /** Receives until nothing has come for half a second. */
    static List<Message<byte[]>> drain(Consumer<byte[]> c, boolean ack) throws Exception {
        List<Message<byte[]>> out = new ArrayList<>();
        for (Message<byte[]> m; (m = c.receive(500, TimeUnit.MILLISECONDS)) != null; out.add(m)) if (ack) c.acknowledge(m);
        return out;
    }

    static void nothingMore(Consumer<byte[]> c, int millis) throws Exception {
        Message<byte[]> m = c.receive(millis, TimeUnit.MILLISECONDS);
        if (m != null) throw new Unexpected("expected no further message, saw " + text(m));
    }

    static String text(Message<byte[]> m) { return new String(m.getData(), StandardCharsets.UTF_8); }

    static List<String> texts(List<Message<byte[]>> all) { return all.stream().map(Broker::text).toList(); }

    static List<String> sorted(List<String> all) { return all.stream().sorted().toList(); }

    static List<String> numbered(String prefix, int from, int to) {
        return IntStream.range(from, to).mapToObj(i -> prefix + "-" + i).toList();
    }

    /** The answer of the admin interface to one request, whatever its status. */
    HttpResponse<String> call(String method, String path, String body) {
        URI at = URI.create(admin + path);
        HttpRequest request = HttpRequest.newBuilder(at).timeout(Duration.ofSeconds(10)).header("Content-Type", "application/json")
            .method(method, body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body)).build();
        try {
            return http.send(request, HttpResponse.BodyHandlers.ofString());
        } catch (java.io.IOException | InterruptedException e) {
            throw new Unexpected(method + " " + at + ": " + e);
        }
    }

    HttpResponse<String> call(String method, String path) { return call(method, "/admin/v2/persistent/public/default/" + path, null); }

    int ask(String method, String path, String body) { return call(method, path, body).statusCode(); }

    void done(String method, String path, String body) {
        same(method + " " + path, 204, ask(method, "/admin/v2/persistent/public/default/" + path, body));
    }

    /** Makes a namespace with the policies, each a path below it and a body, and tells the beginning of its topics' names. */
    String namespace(String name, String... policies) {
        String path = "/admin/v2/namespaces/public/" + name;
        same("namespace " + name, 204, ask("PUT", path, null));
        for (int i = 0; i < policies.length; i += 2) {
            same("policy " + policies[i], 204, ask("POST", path + "/" + policies[i], policies[i + 1]));
        }
        return "persistent://public/" + name + "/";
    }

    /** The topic's statistics as JSON text; each check looks for one thing in it. */
    String stats(String topic) {
        HttpResponse<String> answer = call("GET", topic + "/stats");
        same("status of the statistics of " + topic, 200, answer.statusCode());
        return answer.body();
    }

    long backlog(String topic) {
        Matcher m = Pattern.compile("\"msgBacklog\"\\s*:\\s*(\\d+)").matcher(stats(topic));
        return m.find() ? Long.parseLong(m.group(1)) : -1;
    }

    /** Waits for a figure that the broker brings up to date on its own time. */
    static void settles(String what, long want, Supplier<Long> read) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(10), got;
        while ((got = read.get()) != want && System.nanoTime() < end) Thread.sleep(100);
        same(what, want, got);
    }
}
