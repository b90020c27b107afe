package dev.nereid.scheduler;

import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.scheduler.SeamsTest.Seam;
import dev.nereid.scheduler.queue.BoundSource;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Fence;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeDeviceMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;

/** The backends of {@link SeamsTest}, one for each seam. Safe for use by several threads. */
final class SeamBackends {
    static final String FAILURE = "failed by the test";
    private static final Shape ITEM = Shape.of(1, 2);

    private final FakeDeviceMemory gpu;
    private final Queue<Runnable> later;
    private final Queue<String> violations;
    private final List<FakeInstance> instances = new ArrayList<>();
    private final Map<String, Integer> executionsOf = new ConcurrentHashMap<>();
    private final Map<Sequence.Id, Float> sums = new ConcurrentHashMap<>();
    private final Map<Sequence.Id, Integer> instanceOf = new ConcurrentHashMap<>();
    private final AtomicInteger executedAgain = new AtomicInteger();
    private final AtomicInteger states = new AtomicInteger();

    /**
     * Creates backends without instances.
     *
     * @param later receives what other threads of the backends do
     * @param violations receives descriptions of what should not be
     */
    SeamBackends(FakeDeviceMemory gpu, Queue<Runnable> later, Queue<String> violations) {
        this.gpu = gpu;
        this.later = later;
        this.violations = violations;
    }

    static ModelSettings settings(Seam seam) {
        return ModelSettings.builder(seam.name(), 1)
                .maxBatchSize(64)
                .decoupled(seam == Seam.STREAM)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .build();
    }

    /** Returns how often a request with an input is executed. */
    static int executions(float input) {
        return 1 + (int) input % 3;
    }

    /** Returns the number of responses to an input. */
    static int responses(float input) {
        return 1 + (int) input % 4;
    }

    /** Creates the instances of one model. */
    List<FakeInstance> start(Seam seam) {
        List<FakeInstance> created = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            int number = i;
            created.add(new FakeInstance(
                    switch (seam) {
                        case AGAIN -> batch -> run(batch, true, this::again);
                        case SEQUENCES -> batch -> run(batch, true, request -> addUp(request, number));
                        case DEVICE -> batch -> run(batch, true, this::onDevice);
                        case STREAM -> this::stream;
                        case SHORT -> batch -> run(batch, false, request -> write(request, 0));
                    }));
        }
        instances.addAll(created);
        return created;
    }

    List<FakeInstance> instances() {
        return instances;
    }

    int executedAgain() {
        return executedAgain.get();
    }

    int states() {
        return states.get();
    }

    /** Executes one request. */
    private interface Step {
        void execute(InferenceRequest request);
    }

    /** Executes a batch, perhaps beyond the return of its thread; some requests and executions fail. */
    private void run(Batch batch, boolean mayDefer, Step step) {
        if (chance(25)) {
            throw failure();
        }
        DeferredExecution deferred = mayDefer && chance(4) ? batch.defer() : null;
        try {
            for (InferenceRequest request : batch.requests()) {
                if (request.isNullRequest()) {
                    continue;
                }
                if (chance(25)) {
                    request.fail(failure());
                } else {
                    step.execute(request);
                }
            }
        } finally {
            if (deferred != null) {
                later.add(deferred::complete);
            }
        }
    }

    private static BackendException failure() {
        return new BackendException(ErrorCode.INTERNAL, FAILURE);
    }

    private void again(InferenceRequest request) {
        int execution = executionsOf.merge(request.id(), 1, Integer::sum);
        write(request, execution);
        if (execution < executions(input(request))) {
            request.reschedule();
            executedAgain.incrementAndGet();
        }
    }

    /** Adds one to the state of the sequence, which has to be that of its last execution, on the same instance. */
    private void addUp(InferenceRequest request, int instance) {
        Sequence sequence = request.sequence().orElseThrow();
        expect(instance, instanceOf.putIfAbsent(sequence.id(), instance), "instance of " + sequence);
        float sum = request.requireInput("SUM").data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
        expect(sum, sums.get(sequence.id()), "state of " + sequence);
        String state = BoundSource.NEXT_SUM.outputName();
        request.state(state)
                .allocate(DataType.FP32, Shape.of(1, 1))
                .data()
                .set(ValueLayout.JAVA_FLOAT_UNALIGNED, 0, sum + 1);
        write(request, sum + 1);
        sums.put(sequence.id(), sum + 1);
        states.incrementAndGet();
        if (chance(6)) {
            request.reschedule();
        }
    }

    private void expect(Object actual, Object expected, String what) {
        if (expected != null && !actual.equals(expected)) {
            violations.add(what + ": " + actual + " (expected: " + expected + ")");
        }
    }

    /** Leaves its output on the device, in memory of the server or of its own, which a fence may still have to fill. */
    private void onDevice(InferenceRequest request) {
        MemorySegment result = MemorySegment.ofArray(new float[] {input(request) + 1, 0});
        if (chance(2)) {
            Tensor out = request.response().allocate("OUT", DataType.FP32, ITEM, gpu.place());
            gpu.write(result, out.data());
            return;
        }
        TensorBuffer buffer = gpu.allocate(result.byteSize());
        Tensor out = Tensor.of(DataType.FP32, ITEM, buffer.segment(), gpu.place());
        request.response()
                .put("OUT", out.withFence(new Work(() -> gpu.write(result, buffer.segment()))), buffer::close);
    }

    private void stream(Batch batch) {
        for (InferenceRequest request : batch.requests()) {
            new Responses(request.sender(), input(request)).sendWhileReady();
        }
    }

    private float input(InferenceRequest request) {
        Tensor in = request.requireInput("IN");
        return in.place().isHost() ? in.data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0) : gpu.floats(in.data())[0];
    }

    private void write(InferenceRequest request, float second) {
        write(request.response().allocate("OUT", DataType.FP32, ITEM), input(request) + 1, second);
    }

    private static void write(Tensor out, float first, float second) {
        out.data().set(ValueLayout.JAVA_FLOAT_UNALIGNED, 0, first);
        out.data().set(ValueLayout.JAVA_FLOAT_UNALIGNED, Float.BYTES, second);
    }

    private static boolean chance(int of) {
        return ThreadLocalRandom.current().nextInt(of) == 0;
    }

    /** The responses to one request. Used by one thread at a time. */
    private static final class Responses {
        private final ResponseSender sender;
        private final float input;
        private int sent;

        Responses(ResponseSender sender, float input) {
            this.sender = sender;
            this.input = input;
        }

        void sendWhileReady() {
            try {
                while (sent < responses(input) && sender.isReady()) {
                    InferenceResponse response = sender.newResponse();
                    write(response.allocate("OUT", DataType.FP32, ITEM), input + 1, sent);
                    sent++;
                    sender.send(response);
                }
                if (sent == responses(input)) {
                    sender.complete();
                } else {
                    sender.onReady(this::sendWhileReady);
                }
            } catch (RuntimeException | Error e) {
                sender.fail(new BackendException(ErrorCode.UNAVAILABLE, "response " + sent + ": " + e, e));
            }
        }
    }

    /** Work of the device, done when it is awaited. */
    private record Work(Runnable content) implements Fence {
        @Override
        public boolean isDone() {
            return false;
        }

        @Override
        public boolean await(Duration timeout) {
            content.run();
            return true;
        }
    }
}
