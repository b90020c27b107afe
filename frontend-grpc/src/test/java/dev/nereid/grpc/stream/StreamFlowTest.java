package dev.nereid.grpc.stream;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ResponseFlow;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.grpc.testing.TestFrontend;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.ReceivedRequest;
import inference.ModelStreamInferResponse;
import io.grpc.Status;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests when the requests of a stream let their models send. */
@Timeout(60)
final class StreamFlowTest {
    private static final long BYTES_AHEAD = 100_000;

    private final StreamHarness harness = new StreamHarness(BYTES_AHEAD);
    private final List<String> ran = new ArrayList<>();

    private ReceivedRequest send(String model) {
        harness.send(
                TestFrontend.request(model, "FP32", TestFrontend.floats(1), 1).build());
        return harness.calls.remove();
    }

    private static void respond(ReceivedRequest call, int number) {
        call.respond(List.of(call.input(0, "OUTPUT0")), Map.of("n", new ParameterValue.Int(number)), false);
    }

    private void end(ReceivedRequest... calls) {
        for (ReceivedRequest call : calls) {
            call.end();
        }
        harness.ready(true);
        harness.halfClose();
        assertThat(harness.stream.status).isEqualTo(Status.OK);
        harness.checkMemory();
    }

    @Test
    void isOpenWhileTheTransportAcceptsMessages() {
        ReceivedRequest many = send("many");
        assertThat(many.flow().isOpen()).isTrue();

        harness.ready(false);
        assertThat(many.flow().isOpen()).isFalse();

        harness.ready(true);
        assertThat(many.flow().isOpen()).isTrue();
        end(many);
    }

    @Test
    void resumesAModelWhenTheTransportAcceptsMessages() {
        ReceivedRequest many = send("many");
        harness.ready(false);
        many.flow().whenOpen(() -> ran.add("a"));
        assertThat(ran).isEmpty();

        harness.ready(true);
        harness.ready(true);

        assertThat(ran).containsExactly("a");
        end(many);
    }

    @Test
    void resumesAModelWhenItsResponsesAreWritten() {
        ReceivedRequest many = send("many");
        ReceivedRequest other = send("many");
        harness.ready(false);
        respond(many, 0);
        respond(many, 1);
        respond(other, 0);
        many.flow().whenOpen(() -> ran.add("written " + harness.stream.written.size()));
        assertThat(many.flow().isOpen()).isFalse();

        harness.ready(true);

        assertThat(ran).containsExactly("written 3");
        end(many, other);
    }

    @Test
    void doesNotResumeAModelWhoseLastResponseFillsTheTransport() {
        ReceivedRequest many = send("many");
        harness.ready(false);
        respond(many, 0);
        many.flow().whenOpen(() -> ran.add("a"));
        harness.stream.journal = message -> harness.stream.ready = false;

        harness.ready(true);
        assertThat(harness.stream.written).hasSize(1);
        assertThat(ran).isEmpty();

        harness.ready(true);
        assertThat(ran).containsExactly("a");
        harness.stream.journal = _ -> {};
        end(many);
    }

    @Test
    void resumesEveryModelOfTheStream() {
        List<ReceivedRequest> all = new ArrayList<>();
        for (int i = 0; i < 500; i++) {
            all.add(send("many"));
        }
        harness.ready(false);
        all.forEach(call -> call.flow().whenOpen(() -> ran.add(call.request().id())));

        harness.ready(true);

        assertThat(ran).hasSize(500);
        end(all.toArray(ReceivedRequest[]::new));
    }

    @Test
    void writesWhatAnActionSends() {
        ReceivedRequest many = send("many");
        harness.ready(false);
        many.flow().whenOpen(() -> {
            respond(many, 7);
            many.flow().whenOpen(() -> ran.add("open again"));
        });

        harness.ready(true);

        assertThat(numbers()).containsExactly(7L);
        assertThat(ran).containsExactly("open again");
        end(many);
    }

    @Test
    void isOpenForARequestOfOneResponse() {
        ReceivedRequest plain = send("plain");
        harness.ready(false);

        assertThat(plain.flow()).isSameAs(ResponseFlow.OPEN);
        plain.respondWithInputs();
        end();
    }

    @Test
    void resumesAModelWhoseClientIsGone() {
        ReceivedRequest many = send("many");
        harness.ready(false);
        respond(many, 0);
        many.flow().whenOpen(() -> ran.add("cancelled " + many.isCancelled()));

        harness.cancel();

        assertThat(ran).containsExactly("cancelled true");
        assertThat(many.flow().isOpen()).isTrue();
        many.flow().whenOpen(() -> ran.add("again"));
        assertThat(ran).hasSize(2);
        harness.checkMemory();
    }

    @Test
    void resumesAModelWhenTheStreamFails() {
        ReceivedRequest many = send("many");
        ReceivedRequest heedless = send("many");
        harness.ready(false);
        many.flow().whenOpen(() -> ran.add("cancelled " + many.isCancelled()));

        while (!heedless.isCancelled()) {
            respond(heedless, 0);
        }

        assertThat(ran).containsExactly("cancelled true");
        assertThat(many.flow().isOpen()).isTrue();
        harness.checkMemory();
    }

    @Test
    void isOpenAfterTheEndOfTheRequest() {
        ReceivedRequest many = send("many");
        harness.ready(false);
        respond(many, 0);
        many.fail(ErrorCode.INTERNAL, "no");

        assertThat(many.flow().isOpen()).isTrue();
        end();
    }

    /** Models and transport on threads of their own. */
    @Test
    void losesNoResponseAndNoWakeUp() throws InterruptedException {
        int count = 2_000;
        for (int round = 0; round < 10; round++) {
            StreamHarness racing = new StreamHarness(BYTES_AHEAD);
            List<ReceivedRequest> calls = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                racing.send(TestFrontend.request("many", "FP32", TestFrontend.floats(1), 1)
                        .setId(String.valueOf(i))
                        .build());
                calls.add(racing.calls.remove());
            }
            CountDownLatch ended = new CountDownLatch(calls.size());
            calls.forEach(call -> Thread.startVirtualThread(() -> new Model(call, count, ended).run()));
            Random random = new Random(round);
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
            while (ended.getCount() > 0) {
                assertThat(end - System.nanoTime()).as("time left").isPositive();
                racing.ready(random.nextInt(4) > 0);
                racing.run();
                Thread.onSpinWait();
            }
            racing.ready(true);
            racing.run();
            racing.halfClose();
            racing.run();

            assertThat(racing.stream.status).isEqualTo(Status.OK);
            for (int i = 0; i < calls.size(); i++) {
                String id = String.valueOf(i);
                assertThat(racing.stream.written.stream()
                                .map(ModelStreamInferResponse::getInferResponse)
                                .filter(response -> response.getId().equals(id))
                                .filter(response -> response.containsParameters("n"))
                                .map(response ->
                                        response.getParametersOrThrow("n").getInt64Param()))
                        .containsExactlyElementsOf(
                                LongStream.range(0, count).boxed().toList());
            }
            racing.checkMemory();
        }
    }

    private List<Long> numbers() {
        return harness.stream.written.stream()
                .map(response ->
                        response.getInferResponse().getParametersOrThrow("n").getInt64Param())
                .toList();
    }

    /** A model that sends while the flow is open. Each action runs on a thread of its own. */
    private static final class Model implements Runnable {
        private final ReceivedRequest call;
        private final int count;
        private final CountDownLatch ended;
        private volatile int next;

        Model(ReceivedRequest call, int count, CountDownLatch ended) {
            this.call = call;
            this.count = count;
            this.ended = ended;
        }

        @Override
        @SuppressWarnings("NonAtomicVolatileUpdate") // by one thread at a time
        public void run() {
            while (next < count && call.flow().isOpen()) {
                respond(call, next);
                next++;
            }
            if (next < count) {
                call.flow().whenOpen(() -> Thread.startVirtualThread(this));
            } else {
                call.end();
                ended.countDown();
            }
        }
    }
}
