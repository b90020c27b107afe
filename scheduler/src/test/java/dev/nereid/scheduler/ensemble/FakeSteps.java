package dev.nereid.scheduler.ensemble;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.statistics.ComputeListener;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ParameterValue;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** Models of steps whose requests wait until the test completes them, in any order. Safe for use by any thread. */
final class FakeSteps implements StepModels, PinnedModels {
    /** A request to a step that waits. */
    final class Call {
        final int step;
        final InferRequest request;
        final ResponseObserver observer;
        final AtomicBoolean cancelled = new AtomicBoolean();

        /** Whether a thread completes it. */
        final AtomicBoolean busy = new AtomicBoolean();

        private final AtomicBoolean released = new AtomicBoolean();

        /** How many responses were sent. */
        int sent;

        private Call(int step, InferRequest request, ResponseObserver observer) {
            this.step = step;
            this.request = request;
            this.observer = observer;
        }

        /** Reads its inputs. */
        Map<String, Long> inputs() {
            Map<String, Long> inputs = new TreeMap<>();
            for (InputTensor input : request.inputs()) {
                inputs.put(input.name(), input.data().get(ValueLayout.JAVA_LONG_UNALIGNED, 0));
            }
            return inputs;
        }

        void respond(Map<String, Long> outputs, boolean last) {
            respond(outputs, Map.of(), last);
        }

        void respond(Map<String, Long> outputs, Map<String, ParameterValue> parameters, boolean last) {
            sent++;
            respondWith(new StepResponse(memory, outputs, parameters, last));
        }

        void respondWith(StepResponse response) {
            if (response.isFinal()) {
                end();
            }
            observer.onResponse(response);
        }

        void complete() {
            end();
            observer.onCompleted();
        }

        void fail(InferenceException error) {
            end();
            observer.onError(error);
        }

        private void end() {
            calls.remove(this);
            if (released.compareAndSet(false, true)) {
                request.release().run();
            }
            if (observer instanceof ComputeListener listener) {
                listener.computed(1, 10, 100);
            }
        }
    }

    final List<Call> calls = new CopyOnWriteArrayList<>();
    final AtomicInteger acquired = new AtomicInteger();
    final AtomicInteger closed = new AtomicInteger();
    private final List<ModelSettings> settings;
    private final TensorMemory memory;

    FakeSteps(List<ModelSettings> settings, TensorMemory memory) {
        this.settings = settings;
        this.memory = memory;
    }

    @Override
    public Cancellation acquire(CheckedRequest request, Receiver receiver) {
        acquired.incrementAndGet();
        receiver.acquired(this);
        return Cancellation.NONE;
    }

    @Override
    public List<ModelRef> callers(CheckedRequest request) {
        return List.of();
    }

    @Override
    public String problems() {
        return "";
    }

    @Override
    public StepModel model(int step) {
        return new StepModel() {
            @Override
            public ModelSettings settings() {
                return settings.get(step);
            }

            @Override
            public Cancellation submit(InferRequest request, ResponseObserver observer) {
                Call call = new Call(step, request, observer);
                calls.add(call);
                return () -> call.cancelled.set(true);
            }
        };
    }

    @Override
    public void close() {
        closed.incrementAndGet();
    }
}
