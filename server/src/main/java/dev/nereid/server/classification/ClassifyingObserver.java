package dev.nereid.server.classification;

import dev.nereid.api.Cancellation;
import dev.nereid.api.ForwardingObserver;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.TensorLease;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Classifies responses before it passes them on to the observer of the request. Called by one thread at a time, as
 * observers are.
 *
 * <p>If classes cannot be computed, the request ends with an error; a request to a decoupled model is cancelled, and
 * its further responses are closed.
 */
public final class ClassifyingObserver extends ForwardingObserver {
    private static final Cancellation PENDING = () -> {};
    private static final Cancellation CANCEL_REQUESTED = () -> {};

    private final Classifier classifier;
    private final List<RequestedOutput> requested;
    private final AtomicReference<Cancellation> cancellation = new AtomicReference<>(PENDING);
    private boolean failed;

    /**
     * Wraps the observer of a request.
     *
     * @param classifier computes the classes
     * @param observer notified of the outcome
     */
    public ClassifyingObserver(Classifier classifier, List<RequestedOutput> requested, ResponseObserver observer) {
        super(observer);
        this.classifier = classifier;
        this.requested = requested;
    }

    /** Receives the scheduler's handle of the request, and returns it. */
    public Cancellation attach(Cancellation handle) {
        if (!cancellation.compareAndSet(PENDING, handle)) {
            handle.cancel(); // failed meanwhile
        }
        return handle;
    }

    @Override
    public void onResponse(InferResponse response) {
        if (failed) {
            response.close();
            return;
        }
        InferResponse classified;
        try {
            classified = ClassifiedResponse.of(response, classifier, requested);
        } catch (InferenceException e) {
            fail(response, e);
            return;
        } catch (RuntimeException | InternalError e) { // the latter for shared memory that its owner cut off
            fail(response, new InferenceException(ErrorCode.INTERNAL, "classification failed: " + e));
            return;
        }
        super.onResponse(classified);
    }

    @Override
    public void onFailedResponse(InferenceException error) {
        if (!failed) {
            super.onFailedResponse(error);
        }
    }

    @Override
    public void onCompleted() {
        if (!failed) {
            super.onCompleted();
        }
    }

    @Override
    public void onError(InferenceException error) {
        if (!failed) {
            super.onError(error);
        }
    }

    @Override
    public boolean isLong() {
        return true;
    }

    private void fail(InferResponse response, InferenceException error) {
        failed = true;
        boolean last = response.isFinal();
        response.close();
        if (!last) {
            cancellation.getAndSet(CANCEL_REQUESTED).cancel();
        }
        super.onError(error);
    }

    /** A response with some outputs replaced by their classes. Owns the response and the memory of the classes. */
    private static final class ClassifiedResponse implements InferResponse {
        private final InferResponse response;
        private final List<NamedTensor> outputs;

        /** The memory of the classes of each output; {@code null} for an output of the response. */
        private final @Nullable ReferenceCountedMemory[] memory;

        private final AtomicBoolean closed = new AtomicBoolean();

        private ClassifiedResponse(
                InferResponse response, List<NamedTensor> outputs, @Nullable ReferenceCountedMemory[] memory) {
            this.response = response;
            this.outputs = outputs;
            this.memory = memory;
        }

        /** Replaces outputs; the response stays with the caller if that fails. */
        static ClassifiedResponse of(InferResponse response, Classifier classifier, List<RequestedOutput> requested) {
            List<NamedTensor> outputs = new ArrayList<>();
            @Nullable
            ReferenceCountedMemory[] memory =
                    new @Nullable ReferenceCountedMemory[response.outputs().size()];
            boolean classified = false;
            try {
                for (NamedTensor output : response.outputs()) {
                    long count = classes(output.name(), requested);
                    if (count == 0) {
                        outputs.add(output);
                    } else {
                        Classifier.Classes classes = classifier.classify(output, count);
                        memory[outputs.size()] = ReferenceCountedMemory.of(classes.memory());
                        outputs.add(new NamedTensor(output.name(), classes.tensor()));
                    }
                }
                classified = true;
            } finally {
                if (!classified) {
                    release(memory);
                }
            }
            return new ClassifiedResponse(response, List.copyOf(outputs), memory);
        }

        private static long classes(String output, List<RequestedOutput> requested) {
            for (RequestedOutput candidate : requested) {
                if (candidate.name().equals(output)) {
                    return candidate.classes();
                }
            }
            return 0;
        }

        @Override
        public String model() {
            return response.model();
        }

        @Override
        public long version() {
            return response.version();
        }

        @Override
        public Object source() {
            return response.source();
        }

        @Override
        public String id() {
            return response.id();
        }

        @Override
        public List<NamedTensor> outputs() {
            return outputs;
        }

        @Override
        public Map<String, ParameterValue> parameters() {
            return response.parameters();
        }

        @Override
        public boolean isFinal() {
            return response.isFinal();
        }

        @Override
        public TensorLease lease(int output) {
            TensorLease original = response.lease(output);
            ReferenceCountedMemory classes = memory[output];
            if (classes == null) {
                return original;
            }
            if (!classes.tryRetain()) {
                original.close();
                throw new IllegalStateException("response: closed (expected: leased before its close)");
            }
            return new ClassesLease(outputs.get(output).tensor(), classes, original, new AtomicBoolean());
        }

        @Override
        public void close() {
            if (closed.compareAndSet(false, true)) {
                release(memory);
                response.close();
            }
        }

        private static void release(@Nullable ReferenceCountedMemory[] memory) {
            for (ReferenceCountedMemory classes : memory) {
                if (classes != null) {
                    classes.release();
                }
            }
        }

        /** Leases the classes of an output, and the output, which keeps the request in flight. */
        private record ClassesLease(
                Tensor tensor, ReferenceCountedMemory memory, TensorLease output, AtomicBoolean closed)
                implements TensorLease {
            @Override
            public void close() {
                if (closed.compareAndSet(false, true)) {
                    memory.release();
                    output.close();
                }
            }
        }
    }
}
