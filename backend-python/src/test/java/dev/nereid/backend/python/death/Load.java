package dev.nereid.backend.python.death;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.ModelResponseObserver;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Clients that send requests with unique values, one after the other each, and check what they receive: each request ends once,
 * with its own values, or fails as one whose process has ended.
 */
final class Load {
    /** The models: one instance, two, a decoupled one, and one that calls the first. */
    static final List<String> MODELS = List.of("plain", "pair", "stream", "caller");

    private static final String STREAM = """
            sender = request.get_response_sender()
            def respond(sender=sender, value=value):
                for i in range(3):
                    sender.send(pb.InferenceResponse([pb.Tensor("OUT", value + i)]))
                sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            threading.Thread(target=respond).start() if value[0] % 2 else respond()
            """;

    private static final String CALL = """
            inputs = [pb.Tensor("CODE", np.array([b""], dtype=object)), pb.Tensor("IN", value)]
            called = pb.InferenceRequest(model_name="plain", requested_output_names=["OUT"], inputs=inputs).exec()
            if called.has_error():
                answer = pb.InferenceResponse([], called.error())
            else:
                value = pb.get_output_tensor_by_name(called, "OUT").as_numpy()
            """;

    private static final int LARGE = 20_000;
    private static final long FAILURE_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private final PythonServer server;
    private final List<Thread> threads = new ArrayList<>();
    private final AtomicBoolean stopped = new AtomicBoolean();
    private final AtomicLong values = new AtomicLong();
    private final Map<String, AtomicLong> succeeded = new ConcurrentHashMap<>();
    private final Map<String, AtomicLong> failed = new ConcurrentHashMap<>();
    private final Map<String, AtomicLong> failures = new ConcurrentHashMap<>();
    private final Queue<String> violations = new ConcurrentLinkedQueue<>();

    private Load(PythonServer server) {
        this.server = server;
    }

    static PythonServer.Builder models(PythonServer.Builder builder) {
        return builder.model("plain")
                .model("pair", "instance_group { count: 2 kind: KIND_CPU }")
                .model("stream", "model_transaction_policy { decoupled: true }")
                .model("caller");
    }

    static Load start(PythonServer server, int clients) {
        Load load = new Load(server);
        for (int i = 0; i < clients; i++) {
            String model = MODELS.get(i % MODELS.size());
            load.threads.add(Thread.ofPlatform().daemon().name("client " + i).start(() -> load.run(model)));
        }
        return load;
    }

    private void run(String model) {
        while (!stopped.get()) {
            try {
                send(model);
            } catch (RuntimeException | Error e) {
                violations.add(model + ": " + e);
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    private void send(String model) throws InterruptedException {
        int count = ThreadLocalRandom.current().nextInt(8) == 0
                ? LARGE
                : 1 + ThreadLocalRandom.current().nextInt(8);
        long first = values.getAndAdd(count + 3L);
        long[] in = new long[count];
        for (int i = 0; i < count; i++) {
            in[i] = first + i;
        }
        Answer answer = new Answer(model, first, count);
        String code = model.equals("stream") ? STREAM : model.equals("caller") ? CALL : "";
        server.request(model, code, in).send(answer);
        if (!answer.ended.await(100, TimeUnit.SECONDS)) {
            violations.add(model + ": request " + first + " was never answered");
        }
        if (answer.isFailed) {
            LockSupport.parkNanos(FAILURE_PAUSE_NANOS); // else clients take the processor from the processes that start
        }
    }

    /** An observer of the responses to one request. */
    private final class Answer implements ModelResponseObserver {
        final CountDownLatch ended = new CountDownLatch(1);
        private final String model;
        private final long first;
        private final int count;
        private final AtomicInteger ends = new AtomicInteger();
        private final AtomicInteger responses = new AtomicInteger();
        private volatile boolean isFailed;

        Answer(String model, long first, int count) {
            this.model = model;
            this.first = first;
            this.count = count;
        }

        @Override
        public void onResponse(ModelResponse response) {
            try (response) {
                int number = responses.getAndIncrement();
                if (response.outputs().isEmpty()) {
                    return;
                }
                long[] out = response.requireOutput("OUT").longs();
                if (out.length != count) {
                    violations.add(model + ": " + out.length + " values (expected: " + count + ")");
                    return;
                }
                for (int i = 0; i < count; i++) {
                    if (out[i] != first + i + (model.equals("stream") ? number : 0)) {
                        violations.add(model + ": value " + out[i] + " (expected: " + (first + i) + ")");
                        return;
                    }
                }
            }
        }

        @Override
        public void onCompleted() {
            int expected = model.equals("stream") ? 3 : 1;
            if (responses.get() != expected) {
                violations.add(model + ": " + responses.get() + " responses");
            }
            end(succeeded);
        }

        @Override
        public void onError(BackendException error) {
            String text = String.valueOf(error.getMessage());
            boolean isOfCall = model.equals("caller"); // the code of a call that failed is that of its model
            if ((error.code() != ErrorCode.UNAVAILABLE && !isOfCall) || !text.contains("is not healthy.")) {
                violations.add(model + ": " + error);
            }
            failures.computeIfAbsent(
                            text.replaceAll("'\\w+'", "I").lines().findFirst().orElse(""), _ -> new AtomicLong())
                    .incrementAndGet();
            isFailed = true;
            end(failed);
        }

        private void end(Map<String, AtomicLong> counts) {
            if (ends.incrementAndGet() > 1) {
                violations.add(model + ": request " + first + " ended twice");
            }
            counts.computeIfAbsent(model, _ -> new AtomicLong()).incrementAndGet();
            ended.countDown();
        }
    }

    long total() {
        return sum(succeeded) + sum(failed);
    }

    private static long sum(Map<String, AtomicLong> counts) {
        return counts.values().stream().mapToLong(AtomicLong::get).sum();
    }

    /** Stops the clients, checks what they have received, and returns figures. */
    String stop() throws InterruptedException {
        stopped.set(true);
        for (Thread thread : threads) {
            thread.join(TimeUnit.SECONDS.toMillis(120));
            assertThat(thread.isAlive()).as(thread.getName()).isFalse();
        }
        assertThat(violations).isEmpty();
        return "succeeded " + succeeded + ", failed " + failed + ", by text " + failures;
    }

    long succeeded(String model) {
        return succeeded.getOrDefault(model, new AtomicLong()).get();
    }

    long failed(String model) {
        return failed.getOrDefault(model, new AtomicLong()).get();
    }
}
