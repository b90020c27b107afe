package dev.nereid.testkit.serving;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.Batch;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ResponseReport;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Tensor;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * The backend {@code gated}, whose executions wait for the test. {@code OUTPUT0} is {@code INPUT0}; an execution waits
 * while the gate of its model is closed, and fails while {@link #fail} says so. A decoupled model sends as many
 * responses as its input requests and reports them. Safe for use by any thread.
 */
final class GatedBackend implements BackendProvider {
    private static final long TIMEOUT_SECONDS = 60;

    /** Holds the executions of one model. Safe for use by any thread. */
    static final class Gate {
        private final CountDownLatch waiting = new CountDownLatch(1);
        private final CountDownLatch opened = new CountDownLatch(1);

        /** Waits until an execution waits. */
        void awaitExecution() throws InterruptedException {
            assertThat(waiting.await(TIMEOUT_SECONDS, TimeUnit.SECONDS)).isTrue();
        }

        void open() {
            opened.countDown();
        }

        private void pass() {
            waiting.countDown();
            try {
                if (!opened.await(TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
                    throw new BackendException(ErrorCode.UNAVAILABLE, "gate stayed closed");
                }
            } catch (InterruptedException e) {
                throw new BackendException(ErrorCode.UNAVAILABLE, "interrupted at the gate", e);
            }
        }
    }

    private final Map<String, Gate> gates = new ConcurrentHashMap<>();
    private final Queue<String> executed = new ConcurrentLinkedQueue<>();
    private volatile boolean failing;

    /** Returns the configuration of a model with batches, without backend. */
    static String tensors(int maxBatchSize, String type, String dims) {
        return "backend: \"gated\"\nmax_batch_size: " + maxBatchSize + "\n"
                + "input { name: \"INPUT0\" data_type: TYPE_" + type + " dims: " + dims + " }\n"
                + "output { name: \"OUTPUT0\" data_type: TYPE_" + type + " dims: " + dims + " }\n";
    }

    /** Makes later executions of a model wait. */
    Gate close(String model) {
        Gate gate = new Gate();
        gates.put(model, gate);
        return gate;
    }

    /** Makes later executions fail, or succeed again. */
    void fail(boolean fails) {
        failing = fails;
    }

    /** Returns the models of the executions, in their order. */
    List<String> executed() {
        return List.copyOf(executed);
    }

    @Override
    public String name() {
        return "gated";
    }

    @Override
    public Backend create(BackendContext context) {
        return model -> _ -> batch -> execute(model, batch);
    }

    private void execute(ModelContext model, Batch batch) {
        Gate gate = gates.get(model.settings().name());
        if (gate != null) {
            gate.pass();
        }
        if (failing) {
            throw new BackendException(ErrorCode.INTERNAL, "execution fails as configured");
        }
        for (InferenceRequest request : batch.requests()) {
            if (request.isNullRequest()) {
                continue;
            }
            if (model.settings().decoupled()) {
                respond(request);
            } else {
                request.response().put("OUTPUT0", request.requireInput("INPUT0"), () -> {});
            }
        }
        executed.add(model.settings().name());
    }

    /**
     * Sends as many responses as the first number of the input, and reports each response: it took 10 ns for the first,
     * 20 for the second, and so on, and 1 ns for its outputs. Then ends the request and reports that, with 5 ns; or
     * fails it with 7 ns if the number is below zero. A second number is the place, from 1, of a response that fails.
     */
    private static void respond(InferenceRequest request) {
        ResponseSender sender = request.sender();
        Tensor in = request.requireInput("INPUT0");
        float times = in.data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
        if (times < 0) {
            sender.report(ResponseReport.failed(0, 7, ErrorCode.INTERNAL));
            sender.fail(new BackendException(ErrorCode.INTERNAL, "execution fails as configured"));
            return;
        }
        float failing = in.shape().elementCount() > 1 ? in.data().getAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, 1) : 0;
        for (int i = 1; i <= times; i++) {
            if (i == failing) {
                sender.sendError(new BackendException(ErrorCode.UNAVAILABLE, "response " + i + " failed"));
                continue;
            }
            InferenceResponse response = sender.newResponse();
            response.put("OUTPUT0", in, () -> {});
            sender.report(ResponseReport.of(0, 10L * i, 10L * i + 1));
            sender.send(response);
        }
        sender.report(ResponseReport.empty(0, 5));
        sender.complete();
    }
}
