import java.util.*;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.*;
import org.apache.pulsar.client.api.transaction.Transaction;

/** What the Java client does in transactions. */
class Transactions extends Broker {
    Transactions(String url, String admin) throws PulsarClientException { super(url, admin); }

    void addTo(Map<String, Conform.Body> checks) {
        checks.put("a committed transaction is there as a whole, an aborted one not at all", this::published);
        checks.put("acknowledgements of a transaction count when it is committed, and come back when it is aborted", this::acknowledged);
        checks.put("two transactions cannot acknowledge one message; parts of a batch they can", this::conflicts);
        checks.put("a transaction whose time is over is aborted", this::expired);
    }

    static Transaction begin(PulsarClient c, int seconds) throws Exception {
        return c.newTransaction().withTransactionTimeout(seconds, TimeUnit.SECONDS).build().get(15, TimeUnit.SECONDS);
    }

    PulsarClient transacting() throws PulsarClientException {
        return PulsarClient.builder().serviceUrl(url).operationTimeout(15, TimeUnit.SECONDS).enableTransaction(true).build();
    }

    static Consumer<byte[]> sub(PulsarClient c, String topic, SubscriptionType type) throws PulsarClientException {
        return c.newConsumer().topic(topic).subscriptionName("sub").subscriptionType(type).enableBatchIndexAcknowledgment(true)
            .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
    }

    static Producer<byte[]> pub(PulsarClient c, String topic, boolean batches) throws PulsarClientException {
        return c.newProducer().topic(topic).enableBatching(batches).batchingMaxPublishDelay(50, TimeUnit.MILLISECONDS)
            .sendTimeout(0, TimeUnit.SECONDS).create();
    }

    static String text(Message<byte[]> m) { return m == null ? "nothing" : new String(m.getData()); }

    static List<String> receive(Consumer<byte[]> c, int n) throws Exception {
        List<String> got = new ArrayList<>();
        for (int i = 0; i < n; i++) got.add(text(c.receive(15, TimeUnit.SECONDS)));
        return got;
    }

    void published(String topic) throws Exception {
        for (boolean batches : new boolean[] {false, true}) {
            String x = topic + "-x-" + batches, y = topic + "-y-" + batches;
            try (PulsarClient c = transacting()) {
                Producer<byte[]> px = pub(c, x, batches), py = pub(c, y, batches);
                Consumer<byte[]> cx = sub(c, x, SubscriptionType.Exclusive), cy = sub(c, y, SubscriptionType.Shared);
                for (boolean commit : new boolean[] {true, false}) {
                    Transaction txn = begin(c, 60);
                    for (int i = 0; i < 3; i++) {
                        px.newMessage(txn).value(("in " + commit + i).getBytes()).send();
                        py.newMessage(txn).value(("in " + commit + i).getBytes()).send();
                    }
                    px.newMessage().value("plain".getBytes()).send();
                    same("while it is open", "nothing", text(cx.receive(300, TimeUnit.MILLISECONDS)));
                    same("while it is open", "nothing", text(cy.receive(300, TimeUnit.MILLISECONDS)));
                    List<String> want = new ArrayList<>();
                    if (commit) {
                        txn.commit().get(15, TimeUnit.SECONDS);
                        want.addAll(List.of("in true0", "in true1", "in true2"));
                        same("of the second topic", want, receive(cy, 3));
                    } else {
                        txn.abort().get(15, TimeUnit.SECONDS);
                    }
                    want.add("plain");
                    same("of the first topic", want, receive(cx, want.size()));
                    same("more", "nothing", text(cy.receive(300, TimeUnit.MILLISECONDS)));
                    refused("ended again", Exception.class, () -> txn.commit().get(15, TimeUnit.SECONDS));
                }
                try (Reader<byte[]> r = c.newReader().topic(x).startMessageId(MessageId.earliest).create()) {
                    int n = 0;
                    while (r.hasMessageAvailable()) {
                        same("aborted message read", false, text(r.readNext(15, TimeUnit.SECONDS)).startsWith("in false"));
                        n++;
                    }
                    same("messages read", 5, n);
                }
            }
        }
    }

    void acknowledged(String topic) throws Exception {
        for (SubscriptionType type : SubscriptionType.values()) {
            try (PulsarClient c = transacting()) {
                String t = topic + "-" + type;
                Producer<byte[]> p = pub(c, t, false);
                Consumer<byte[]> s = sub(c, t, type);
                for (String text : List.of("a", "b")) p.newMessage().key("k").value(text.getBytes()).send();
                Transaction txn = begin(c, 60);
                s.acknowledgeAsync(s.receive(15, TimeUnit.SECONDS).getMessageId(), txn).get(15, TimeUnit.SECONDS);
                s.acknowledgeAsync(s.receive(15, TimeUnit.SECONDS).getMessageId(), txn).get(15, TimeUnit.SECONDS);
                txn.abort().get(15, TimeUnit.SECONDS);
                Transaction again = begin(c, 60);
                for (String want : List.of("a", "b")) {
                    Message<byte[]> m = s.receive(15, TimeUnit.SECONDS);
                    same("after the abort, " + type, want, text(m));
                    s.acknowledgeAsync(m.getMessageId(), again).get(15, TimeUnit.SECONDS);
                }
                s.close();
                s = sub(c, t, type);
                same("while it is open, " + type, "nothing", text(s.receive(500, TimeUnit.MILLISECONDS)));
                again.commit().get(15, TimeUnit.SECONDS);
                s.close();
                s = sub(c, t, type);
                same("after the commit, " + type, "nothing", text(s.receive(1500, TimeUnit.MILLISECONDS)));
            }
        }
    }

    void conflicts(String topic) throws Exception {
        try (PulsarClient c = transacting()) {
            Producer<byte[]> p = c.newProducer().topic(topic).batchingMaxMessages(4).batchingMaxPublishDelay(5, TimeUnit.SECONDS).create();
            Consumer<byte[]> s = sub(c, topic, SubscriptionType.Shared);
            for (int i = 0; i < 4; i++) p.sendAsync(("m" + i).getBytes());
            p.flush();
            List<MessageId> ids = new ArrayList<>();
            for (int i = 0; i < 4; i++) ids.add(s.receive(15, TimeUnit.SECONDS).getMessageId());
            Transaction x = begin(c, 60), y = begin(c, 60);
            s.acknowledgeAsync(ids.get(0), x).get(15, TimeUnit.SECONDS);
            s.acknowledgeAsync(ids.get(1), y).get(15, TimeUnit.SECONDS);
            refused("a message of another transaction", Exception.class, () -> s.acknowledgeAsync(ids.get(0), y).get(15, TimeUnit.SECONDS));
            x.commit().get(15, TimeUnit.SECONDS);
            y.abort().get(15, TimeUnit.SECONDS);
            s.close();
            Consumer<byte[]> again = sub(c, topic, SubscriptionType.Shared);
            same("what is left of the batch", List.of("m1", "m2", "m3"), receive(again, 3));
        }
    }

    void expired(String topic) throws Exception {
        try (PulsarClient c = transacting()) {
            Producer<byte[]> p = pub(c, topic, false);
            Consumer<byte[]> s = sub(c, topic, SubscriptionType.Exclusive);
            Transaction txn = begin(c, 1);
            p.newMessage(txn).value("in".getBytes()).send();
            p.newMessage().value("plain".getBytes()).send();
            same("when its time is over", "plain", text(s.receive(15, TimeUnit.SECONDS)));
            refused("to commit it", Exception.class, () -> txn.commit().get(15, TimeUnit.SECONDS));
        }
    }
}
