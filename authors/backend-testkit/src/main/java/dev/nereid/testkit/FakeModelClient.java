package dev.nereid.testkit;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelRequest;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/** A {@link ModelClient} with requests that the test, or an action, completes. Safe for use by any thread. */
public final class FakeModelClient implements ModelClient {
    private final LeakCheckingMemory memory;
    private final Consumer<FakeModelRequest> responder;
    private final Set<String> ready;
    private final Set<String> known;
    private final Set<String> decoupled = ConcurrentHashMap.newKeySet();
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final List<FakeModelRequest> sent = new ArrayList<>();

    @GuardedBy("lock")
    private final List<String> controls = new ArrayList<>();

    /**
     * Creates the client of a server.
     *
     * @param memory holds the outputs of responses
     */
    public FakeModelClient(LeakCheckingMemory memory, String... ready) {
        this(memory, request -> {}, ready);
    }

    /**
     * Creates the client of a server that responds by an action.
     *
     * @param memory holds the outputs of responses
     * @param responder receives each request on the sending thread, while it is sent, and may complete it
     */
    public FakeModelClient(LeakCheckingMemory memory, Consumer<FakeModelRequest> responder, String... ready) {
        this.memory = memory;
        this.responder = responder;
        this.ready = ConcurrentHashMap.newKeySet();
        this.ready.addAll(Set.of(ready));
        known = ConcurrentHashMap.newKeySet();
        known.addAll(this.ready);
    }

    /**
     * Returns the requests that were sent so far.
     *
     * @return the requests in the order in which they were sent
     */
    public List<FakeModelRequest> sent() {
        lock.lock();
        try {
            return List.copyOf(sent);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public ModelRequest request(String model) {
        return new FakeModelRequest(model, memory, this::add);
    }

    @Override
    public boolean isReady(String model) {
        return ready.contains(model);
    }

    /**
     * {@inheritDoc}
     *
     * @return whether the model is ready, in any version; throws for a model that was never named
     */
    @Override
    public boolean isReady(String model, long version) {
        checkKnown(model);
        return ready.contains(model);
    }

    /**
     * Makes models decoupled.
     *
     * @param models their names, which {@link #isReady(String, long)} knows from now on
     */
    public FakeModelClient withDecoupled(String... models) {
        decoupled.addAll(Set.of(models));
        known.addAll(decoupled);
        return this;
    }

    /**
     * {@inheritDoc}
     *
     * @return whether the model is one of {@link #withDecoupled}, in any version; throws for a model that was never named
     */
    @Override
    public boolean isDecoupled(String model, long version) {
        checkKnown(model);
        return decoupled.contains(model);
    }

    private void checkKnown(String model) {
        if (!known.contains(model)) {
            throw new BackendException(ErrorCode.NOT_FOUND, "Request for unknown model: '" + model + "' is not found");
        }
    }

    /**
     * Returns the loads and unloads so far.
     *
     * @return each as a text, like {@code load m}, {@code load m with {…} and [1/model.onnx]}, {@code unload m} and
     *     {@code unload m with dependents}, in the order of the calls
     */
    public List<String> controls() {
        lock.lock();
        try {
            return List.copyOf(controls);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public CompletionStage<Void> load(String model) {
        return load(model, "", Map.of());
    }

    @Override
    public CompletionStage<Void> load(String model, String config, Map<String, ByteBuffer> files) {
        boolean isPlain = config.isEmpty() && files.isEmpty();
        add("load " + model + (isPlain ? "" : " with " + config + " and " + new TreeSet<>(files.keySet())));
        known.add(model);
        ready.add(model);
        return CompletableFuture.completedStage(null);
    }

    @Override
    public CompletionStage<Void> unload(String model) {
        return unload(model, false);
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        add("unload " + model + (dependents ? " with dependents" : ""));
        ready.remove(model);
        return CompletableFuture.completedStage(null);
    }

    private void add(String control) {
        lock.lock();
        try {
            controls.add(control);
        } finally {
            lock.unlock();
        }
    }

    private void add(FakeModelRequest request) {
        lock.lock();
        try {
            sent.add(request);
        } finally {
            lock.unlock();
        }
        responder.accept(request);
    }
}
