package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.ResponseObserver;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.TestPaths;
import dev.nereid.server.NereidServer;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The decoupled examples as plugins, with requests from an embedding program. */
class DecoupledExamplesIT {
    private static final long TIMEOUT_SECONDS = 20;
    private static final int WEEK_MILLIS = 604_800_000;

    private static NereidServer server;

    @BeforeAll
    static void start() throws InterruptedException {
        server = NereidServer.start(ServerOptions.of(TestPaths.checkout().resolve("examples/plugin-models"))
                .withPlugins(TestPaths.plugins()));
    }

    @AfterAll
    static void stop() {
        server.close();
        assertThat(server.memory().bytesInUse()).isZero();
    }

    @Test
    void squareSendsTheRequestedNumberOfResponses() throws InterruptedException {
        ResponseCollector collector = new ResponseCollector();

        infer(collector, "square", input("IN", DataType.INT32, 3));

        collector.await();
        assertThat(collector.responses).containsExactly("OUT=3", "OUT=3", "OUT=3");
        assertThat(collector.errors).isEmpty();
    }

    @Test
    void repeatGoesOnAfterItsExecution() throws InterruptedException {
        ResponseCollector collector = new ResponseCollector();

        infer(
                collector,
                "repeat",
                input("IN", DataType.INT32, 7, -8),
                input("DELAY", DataType.UINT32, 1, 0),
                input("WAIT", DataType.UINT32, 0));

        collector.await();
        assertThat(collector.responses).containsExactly("OUT=7 IDX=0", "OUT=-8 IDX=1");
    }

    @Test
    void repeatEndsWhenItIsCancelled() throws InterruptedException {
        ResponseCollector collector = new ResponseCollector();

        Cancellation call = infer(
                collector,
                "repeat",
                input("IN", DataType.INT32, 7, 8),
                input("DELAY", DataType.UINT32, 0, WEEK_MILLIS),
                input("WAIT", DataType.UINT32, WEEK_MILLIS));
        Eventually.holds("the first response", TIMEOUT_SECONDS, () -> collector.first.getCount() == 0);
        call.cancel();

        collector.await();
        assertThat(collector.responses).containsExactly("OUT=7 IDX=0");
        assertThat(collector.errors).containsExactly(ErrorCode.CANCELLED);
        Eventually.holds(
                "no memory in use", TIMEOUT_SECONDS, () -> server.memory().bytesInUse() == 0);
    }

    private static Cancellation infer(ResponseCollector collector, String model, InputTensor... inputs) {
        return server.infer(InferRequest.of(ModelRef.latest(model), List.of(inputs), () -> {}), collector);
    }

    private static InputTensor input(String name, DataType type, int... values) {
        return InputTensor.of(
                name,
                Tensor.of(type, Shape.of(values.length), Arena.ofAuto().allocateFrom(ValueLayout.JAVA_INT, values)));
    }

    /** Collects responses and errors. Written by one thread at a time, read after the end. */
    private static final class ResponseCollector implements ResponseObserver {
        private final List<String> responses = new ArrayList<>();
        private final List<ErrorCode> errors = new ArrayList<>();
        private final CountDownLatch first = new CountDownLatch(1);
        private final CountDownLatch ended = new CountDownLatch(1);

        @Override
        public void onResponse(InferResponse response) {
            List<String> outputs = new ArrayList<>();
            for (NamedTensor output : response.outputs()) {
                outputs.add(output.name() + "=" + output.tensor().data().get(ValueLayout.JAVA_INT_UNALIGNED, 0));
            }
            responses.add(String.join(" ", outputs));
            response.close();
            first.countDown();
        }

        @Override
        public void onCompleted() {
            ended.countDown();
        }

        @Override
        public void onError(InferenceException error) {
            errors.add(error.code());
            ended.countDown();
        }

        void await() throws InterruptedException {
            assertThat(ended.await(TIMEOUT_SECONDS, TimeUnit.SECONDS)).isTrue();
        }
    }
}
