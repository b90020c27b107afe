package dev.nereid.scheduler.ensemble;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.call.CallChain;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.statistics.StepObserver;
import dev.nereid.spi.ModelSettings;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Models of steps whose requests wait until the test completes them, in any order. Safe for use by any thread. */
final class FakeSteps implements StepModels {
    /** A request to a step that waits. */
    final class Call {
        final int step;

        /** How often the models had been loaded again when the request to the ensemble began. */
        final int generation;

        final InferRequest request;
        final ResponseObserver observer;
        final AtomicBoolean cancelled = new AtomicBoolean();

        /** {@code true} while a thread completes it. */
        final AtomicBoolean busy = new AtomicBoolean();

        private final AtomicBoolean released = new AtomicBoolean();

        /** How many responses were sent. */
        int sent;

        private Call(int step, int generation, InferRequest request, ResponseObserver observer) {
            this.step = step;
            this.generation = generation;
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
            if (observer instanceof StepObserver listener) {
                listener.computed(1, 10, 100);
            }
        }
    }

    final List<Call> calls = new CopyOnWriteArrayList<>();

    /** The sequences that ended since a step never gets its request, and the steps. */
    final List<String> cancelled = new CopyOnWriteArrayList<>();

    final AtomicInteger acquired = new AtomicInteger();
    final AtomicInteger closed = new AtomicInteger();
    private final List<ModelSettings> settings;
    private final TensorMemory memory;

    /** Counts the loads; requests that have begun keep the models of theirs. */
    private final AtomicInteger generation = new AtomicInteger();

    /** The requests that wait for models, while {@link #deferAcquisitions} holds. */
    final List<Receiver> acquiring = new CopyOnWriteArrayList<>();

    final AtomicBoolean acquisitionCancelled = new AtomicBoolean();
    private volatile boolean defers;

    /** The steps whose tensors have to lie on the host. */
    final Set<Integer> onHost = ConcurrentHashMap.newKeySet();

    /** Completes requests as they are submitted; {@code null} if the test does so later. */
    private volatile @Nullable Consumer<Call> direct;

    FakeSteps(List<ModelSettings> settings, TensorMemory memory) {
        this.settings = settings;
        this.memory = memory;
    }

    @Override
    public Cancellation acquire(CheckedRequest request, Receiver receiver) {
        if (defers) {
            acquiring.add(receiver);
            return () -> acquisitionCancelled.set(true);
        }
        acquire(receiver);
        return Cancellation.NONE;
    }

    /** Passes the models to a request. */
    void acquire(Receiver receiver) {
        acquiring.remove(receiver);
        acquired.incrementAndGet();
        receiver.acquired(new Pinned(generation.get()));
    }

    /** Makes requests wait for their models until {@link #acquire(Receiver)}. */
    void deferAcquisitions() {
        defers = true;
    }

    /** Completes requests at once, on the stack of those who submit them. */
    void executeDirectly(Consumer<Call> execution) {
        direct = execution;
    }

    /** Loads all models again, for the requests that begin from now on. */
    void reload() {
        generation.incrementAndGet();
    }

    /** Returns how often the models were loaded again. */
    int generation() {
        return generation.get();
    }

    @Override
    public void cancelSequence(int step, RequestOptions options) {
        cancelled.add(options.sequence().orElseThrow().id() + " at " + step);
    }

    @Override
    public CallChain callers(CheckedRequest request) {
        return CallChain.NONE;
    }

    @Override
    public String problems() {
        return "";
    }

    /** Returns the configuration of a step. */
    ModelSettings settings(int step) {
        return settings.get(step);
    }

    /** The models of one request. */
    private final class Pinned implements StepModels.Pinned {
        private final int pinned;

        Pinned(int pinned) {
            this.pinned = pinned;
        }

        @Override
        public StepModel model(int step) {
            return new StepModel() {
                @Override
                public ModelSettings settings() {
                    return settings.get(step);
                }

                @Override
                public boolean needsHostTensors() {
                    return onHost.contains(step);
                }

                @Override
                public Cancellation submit(InferRequest request, ResponseObserver observer) {
                    Call call = new Call(step, pinned, request, observer);
                    calls.add(call);
                    Consumer<Call> execution = direct;
                    if (execution != null) {
                        execution.accept(call);
                    }
                    return () -> call.cancelled.set(true);
                }
            };
        }

        @Override
        public void close() {
            closed.incrementAndGet();
        }
    }
}
