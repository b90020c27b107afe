package dev.nereid.http.infer;

import static dev.nereid.http.RawHttpConnection.bytes;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.http.RawHttpConnection;
import dev.nereid.http.RunningFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.ReceivedRequest;
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

/**
 * Tests clients that disconnect during or before the execution of their request. The model has one instance, which
 * executes this request or another one before it.
 */
@Timeout(60)
class DisconnectIT {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);
    private static final String PATH = "/v2/models/busy/infer";

    private final ExecutorService instance = Executors.newSingleThreadExecutor();
    /** A permit for each request that the model has, executed or not. */
    private final Semaphore queued = new Semaphore(0);

    private final BlockingQueue<ReceivedRequest> executing = new LinkedBlockingQueue<>();
    private final CountDownLatch gate = new CountDownLatch(1);
    private RunningFrontend frontend;

    @BeforeEach
    void start() throws IOException {
        frontend = new RunningFrontend(RunningFrontend.OPTIONS);
        frontend.server.add(FakeModel.identity("busy", DataType.UINT8, 0, -1)
                .responding(this::execute)
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
    void cancelsAQueuedRequest() throws Exception {
        try (RawHttpConnection first = frontend.connect()) {
            first.post(PATH, "", body(1));
            take();
            RawHttpConnection second = frontend.connect();
            second.post(PATH, "", body(2));
            assertThat(queued.tryAcquire(2, TIMEOUT.toSeconds(), TimeUnit.SECONDS))
                    .isTrue();

            second.close();

            ReceivedRequest waiting = frontend.server.requests().getLast();
            assertThat(waiting.awaitCancel(TIMEOUT)).isTrue();
            gate.countDown();
            assertThat(first.receive().text()).contains("\"data\":[1]");
            assertThat(executing).isEmpty();
        }
    }

    @Test
    void cancelsAnExecutingRequest() throws Exception {
        RawHttpConnection connection = frontend.connect();
        connection.post(PATH, "", body(1));
        ReceivedRequest received = take();

        connection.close();

        assertThat(received.awaitCancel(TIMEOUT)).isTrue();
    }

    @Test
    void cancelsAGenerateRequest() throws Exception {
        RawHttpConnection connection = frontend.connect();
        connection.post("/v2/models/busy/generate", "", bytes("{\"INPUT0\":[1]}"));
        ReceivedRequest received = take();

        connection.close();

        assertThat(received.awaitCancel(TIMEOUT)).isTrue();
    }

    /** Executes requests that are not cancelled; the first of them waits at the gate. */
    private void execute(ReceivedRequest received) {
        if (received.isCancelled()) {
            return;
        }
        executing.add(received);
        try {
            assertThat(gate.await(TIMEOUT.toSeconds(), TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
        received.respondWithInputs();
    }

    private ReceivedRequest take() throws InterruptedException {
        ReceivedRequest received = executing.poll(TIMEOUT.toSeconds(), TimeUnit.SECONDS);
        assertThat(received).isNotNull();
        return received;
    }

    private static byte[] body(int value) {
        return bytes(
                "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1],\"datatype\":\"UINT8\",\"data\":[" + value + "]}]}");
    }
}
