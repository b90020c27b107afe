package dev.nereid.backend.python.execute;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.ReceivedResponses;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** Tests models under random load of many clients: each response is compared, and nothing is left afterwards. */
final class MixedLoadIT {
    private static final int CLIENTS = 8;
    private static final long DURATION = TimeUnit.SECONDS.toNanos(20);
    private static final int[] SIZES = {1, 10, 1000, 4096, 5000, 50_000, 300_000};
    private static final String TWO = " instance_group { count: 2 kind: KIND_CPU } ";
    private static final String IO = """
            input [ { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] } ]
            output [ { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] } ]
            """ + TWO;

    private static final String HEAD = """
            import asyncio
            import threading
            import numpy as np
            import triton_python_backend_utils as pb


            def x(request):
                return pb.get_input_tensor_by_name(request, "IN").as_numpy()


            def out(array):
                return pb.InferenceResponse([pb.Tensor("OUT", array)])

            """;

    /** Adds one; of a first element below zero, an error. */
    private static final String PLUS = HEAD + """
            class TritonPythonModel:
                def execute(self, requests):
                    return [pb.InferenceResponse(error=pb.TritonError("negative")) if x(r).flat[0] < 0 else out(x(r) + 1)
                            for r in requests]
            """;

    private static final String SAME = HEAD + """
            class TritonPythonModel:
                def execute(self, requests):
                    return [out(x(r)) for r in requests]
            """;

    /** Sends three responses from a thread, the input plus 0 to 2. */
    private static final String STREAM = HEAD + """
            class TritonPythonModel:
                def execute(self, requests):
                    for r in requests:
                        threading.Thread(target=self.answer, args=(x(r), r.get_response_sender())).start()

                def answer(self, array, sender):
                    for i in range(3):
                        sender.send(out(array + i))
                    sender.send(flags=1)
            """;

    /** As that, in coroutines that call another model. */
    private static final String COROUTINE = HEAD + """
            class TritonPythonModel:
                async def execute(self, requests):
                    await asyncio.gather(*[self.answer(r, r.get_response_sender()) for r in requests])

                async def answer(self, r, sender):
                    array = x(r)
                    for i in range(3):
                        call = pb.InferenceRequest(model_name="same", requested_output_names=["OUT"],
                            inputs=[pb.Tensor("IN", array + i)])
                        response = await call.async_exec()
                        sender.send(out(pb.get_output_tensor_by_name(response, "OUT").as_numpy()))
                    sender.send(flags=1)
            """;

    private static final String CALLS = HEAD + """
            class TritonPythonModel:
                def execute(self, requests):
                    answers = []
                    for r in requests:
                        call = pb.InferenceRequest(model_name="plus", requested_output_names=["OUT"],
                            inputs=[pb.Tensor("IN", x(r)[np.newaxis] + 1)])
                        response = call.exec()
                        if response.has_error():
                            answers.append(pb.InferenceResponse(error=response.error()))
                        else:
                            answers.append(pb.InferenceResponse(response.output_tensors()))
                    return answers
            """;

    /** Sums up by sequence. */
    private static final String SUM = HEAD + """
            class TritonPythonModel:
                def initialize(self, args):
                    self.sums = {}

                def execute(self, requests):
                    answers = []
                    for r in requests:
                        key = r.correlation_id()
                        if r.flags() & 1:
                            self.sums[key] = 0
                        self.sums[key] = self.sums[key] + x(r)
                        answers.append(out(self.sums[key]))
                        if r.flags() & 2:
                            del self.sums[key]
                    return answers
            """;

    private final AtomicLong sequences = new AtomicLong();
    private final AtomicLong answers = new AtomicLong();

    private static float[] values(Random random) {
        float[] values = new float[SIZES[random.nextInt(SIZES.length)]];
        float first = random.nextInt(1000);
        for (int i = 0; i < values.length; i++) {
            values[i] = first + i % 7;
        }
        return values;
    }

    private static void assertValues(ModelResponse response, float[] values, float plus) {
        float[] got = response.requireOutput("OUT").floats();
        assertThat(got.length).isEqualTo(values.length);
        for (int i = 0; i < got.length; i++) {
            if (got[i] != values[i] + plus) {
                throw new AssertionError("element " + i + ": " + got[i] + " (expected: " + (values[i] + plus) + ")");
            }
        }
    }

    private static ModelRequest request(PythonServer server, String model, boolean isBatched, float[] values) {
        Shape shape = isBatched ? Shape.of(1, values.length) : Shape.of(values.length);
        return server.request(model).input("IN", shape, values);
    }

    private void client(PythonServer server, long seed, long end) {
        Random random = new Random(seed);
        while (System.nanoTime() < end) {
            float[] values = values(random);
            switch (random.nextInt(8)) {
                case 0 -> one(server, "same", false, values, 0);
                case 1 -> one(server, "plus", true, values, 1);
                case 2 -> stream(server, "stream", values);
                case 3 -> stream(server, "coroutine", values);
                case 4 -> one(server, "calls", false, values, 2);
                case 5 -> sequence(server, random, values);
                case 6 -> negative(server, values);
                default -> cancelled(server, random, values);
            }
        }
    }

    private void one(PythonServer server, String model, boolean isBatched, float[] values, float plus) {
        try (ReceivedResponses received = server.send(request(server, model, isBatched, values))) {
            assertValues(received.one(), values, plus);
            answers.incrementAndGet();
        }
    }

    private void stream(PythonServer server, String model, float[] values) {
        try (ReceivedResponses received = server.send(request(server, model, false, values))) {
            List<ModelResponse> all = received.all();
            assertThat(all).hasSize(3);
            for (int i = 0; i < 3; i++) {
                assertValues(all.get(i), values, i);
            }
            answers.addAndGet(3);
        }
    }

    private void sequence(PythonServer server, Random random, float[] values) {
        long id = sequences.incrementAndGet();
        int length = 1 + random.nextInt(4);
        float[] sum = new float[values.length];
        for (int i = 0; i < length; i++) {
            ModelRequest request =
                    request(server, "sum", true, values).sequence(Sequence.of(id, i == 0, i == length - 1));
            try (ReceivedResponses received = server.send(request)) {
                for (int j = 0; j < sum.length; j++) {
                    sum[j] += values[j];
                }
                assertValues(received.one(), sum, 0);
                answers.incrementAndGet();
            }
        }
    }

    private void negative(PythonServer server, float[] values) {
        values[0] = -1;
        try (ReceivedResponses received = server.send(request(server, "plus", true, values))) {
            assertThat(received.error()).hasMessage("negative");
            answers.incrementAndGet();
        }
    }

    /** Cancels at some time; what comes before is right. */
    private void cancelled(PythonServer server, Random random, float[] values) {
        boolean isStream = random.nextBoolean();
        ModelRequest request = request(server, isStream ? "stream" : "calls", false, values);
        try (ReceivedResponses received = server.send(request)) {
            long until = System.nanoTime() + random.nextInt(2_000_000);
            while (System.nanoTime() < until) {
                Thread.onSpinWait();
            }
            request.cancel();
            try {
                List<ModelResponse> all = received.all();
                for (int i = 0; i < all.size(); i++) {
                    assertValues(all.get(i), values, isStream ? i : 2);
                }
            } catch (BackendException e) {
                assertThat(e.code()).isEqualTo(ErrorCode.CANCELLED);
            }
            answers.incrementAndGet();
        }
    }

    @Test
    void answersManyClientsRightly() throws Exception {
        long seed = System.nanoTime();
        try (PythonServer server = PythonServer.builder()
                        .model("same", IO, SAME)
                        .model(
                                "plus",
                                IO + "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 200 }",
                                PLUS)
                        .model("stream", IO + "model_transaction_policy { decoupled: true }", STREAM)
                        .model("coroutine", IO + "model_transaction_policy { decoupled: true }", COROUTINE)
                        .model("calls", IO, CALLS)
                        .model("sum", IO + "max_batch_size: 4 sequence_batching { oldest { } }", SUM)
                        .start();
                ExecutorService threads = Executors.newFixedThreadPool(CLIENTS)) {
            long end = System.nanoTime() + DURATION;
            List<Callable<Void>> clients = new ArrayList<>();
            for (int i = 0; i < CLIENTS; i++) {
                long own = seed + i;
                clients.add(() -> {
                    client(server, own, end);
                    return null;
                });
            }
            for (Future<Void> client : threads.invokeAll(clients)) {
                client.get();
            }
            assertThat(answers).as("seed " + seed).hasValueGreaterThan(500);
            assertNothingIsLeft(server);
        }
    }

    private static void assertNothingIsLeft(PythonServer server) {
        PythonServer.await(
                "end of all requests",
                () -> server.local().server().requestsInFlight().isEmpty());
        assertThat(server.log().lines("WARNING"))
                .as("warnings")
                .filteredOn(line -> line.contains("python") || line.contains("frame"))
                .isEmpty();
        PythonServer.await("shared memory", () -> sharedBytes() < (12L << 20));
    }

    /** Returns the size of the memory files that this process has open. */
    private static long sharedBytes() {
        long bytes = 0;
        java.io.File[] descriptors = new java.io.File("/proc/self/fd").listFiles();
        for (java.io.File descriptor : descriptors == null ? new java.io.File[0] : descriptors) {
            try {
                if (java.nio.file.Files.readSymbolicLink(descriptor.toPath())
                        .toString()
                        .startsWith("/memfd:")) {
                    bytes += java.nio.file.Files.size(descriptor.toPath());
                }
            } catch (java.io.IOException e) {
                assertThat(e).isInstanceOf(java.nio.file.NoSuchFileException.class); // closed meanwhile
            }
        }
        return bytes;
    }
}
