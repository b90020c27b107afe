package dev.nereid.http;

import static dev.nereid.http.HttpConnection.bytes;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeCall;
import dev.nereid.testkit.FakeModel;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Clients that disconnect while a model of one instance has their request, or another one before theirs. */
@Timeout(60)
class DisconnectIT {
    private static final Duration PATIENCE = Duration.ofSeconds(20);
    private static final String PATH = "/v2/models/busy/infer";

    private final ExecutorService instance = Executors.newSingleThreadExecutor();
    /** A permit for each request that the model has, executed or not. */
    private final Semaphore queued = new Semaphore(0);

    private final BlockingQueue<FakeCall> executing = new LinkedBlockingQueue<>();
    private final CountDownLatch gate = new CountDownLatch(1);
    private RunningFrontend frontend;

    @BeforeEach
    void start() throws IOException {
        frontend = new RunningFrontend(RunningFrontend.OPTIONS);
        frontend.server.add(FakeModel.identity("busy", DataType.UINT8, 0, -1)
                .answering(this::execute)
                .on(task -> {
                    instance.execute(task);
                    queued.release();
                }));
    }

    @AfterEach
    void stop() {
        gate.countDown();
        instance.close();
        frontend.close();
    }

    @Test
    void withdrawsAQueuedRequest() throws Exception {
        try (HttpConnection first = frontend.connect()) {
            first.post(PATH, "", body(1));
            take();
            HttpConnection second = frontend.connect();
            second.post(PATH, "", body(2));
            assertThat(queued.tryAcquire(2, PATIENCE.toSeconds(), TimeUnit.SECONDS))
                    .isTrue();

            second.close();

            FakeCall waiting = frontend.server.calls().getLast();
            assertThat(waiting.awaitCancel(PATIENCE)).isTrue();
            gate.countDown();
            assertThat(first.receive().text()).contains("\"data\":[1]");
            assertThat(executing).isEmpty();
        }
    }

    @Test
    void withdrawsAnExecutingRequest() throws Exception {
        HttpConnection connection = frontend.connect();
        connection.post(PATH, "", body(1));
        FakeCall call = take();

        connection.close();

        assertThat(call.awaitCancel(PATIENCE)).isTrue();
    }

    @Test
    void withdrawsARequestToGenerate() throws Exception {
        HttpConnection connection = frontend.connect();
        connection.post("/v2/models/busy/generate", "", bytes("{\"INPUT0\":[1]}"));
        FakeCall call = take();

        connection.close();

        assertThat(call.awaitCancel(PATIENCE)).isTrue();
    }

    /** Executes what nobody has withdrawn; the first of them waits at the gate. */
    private void execute(FakeCall call) {
        if (call.isCancelled()) {
            return;
        }
        executing.add(call);
        try {
            assertThat(gate.await(PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
        call.respondWithInputs();
    }

    private FakeCall take() throws InterruptedException {
        FakeCall call = executing.poll(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        assertThat(call).isNotNull();
        return call;
    }

    private static byte[] body(int value) {
        return bytes(
                "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1],\"datatype\":\"UINT8\",\"data\":[" + value + "]}]}");
    }
}
