package dev.nereid.testkit;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelCatalog;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.Refusals;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.ServerMetadata;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.api.statistics.ModelStatistics;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.function.Function;

/**
 * An {@link InferenceServer} with models defined by the test, for tests of front ends. Safe for use by any thread.
 *
 * <p>It fulfills the contract of the port, above all that the memory of every request is released once, after the last
 * response was closed; it does not check requests against models.
 */
public final class FakeInferenceServer implements InferenceServer {
    private final Refusals refusals = Refusals.counting(false);
    private static final int MAX_REQUESTS = 1000;

    private final TensorMemory memory;
    private final FakeCatalog catalog = new FakeCatalog();
    private final ConcurrentLinkedDeque<ReceivedRequest> requests = new ConcurrentLinkedDeque<>();
    private volatile boolean live = true;
    private volatile boolean ready = true;
    private volatile boolean exiting;
    private final FakeControl control = new FakeControl(catalog::index);
    private final FakeSharedMemory sharedMemory = new FakeSharedMemory();

    /**
     * Creates a server without models that is live and ready.
     *
     * @param memory the pool for inputs and outputs
     */
    public FakeInferenceServer(TensorMemory memory) {
        this.memory = requireNonNull(memory, "memory");
    }

    /** Adds a model, or replaces the one of the same name. */
    public FakeInferenceServer add(FakeModel model) {
        catalog.add(model);
        return this;
    }

    /**
     * Sets the result of {@link #isLive()}.
     *
     * @param now the result from now on
     */
    public void setLive(boolean now) {
        live = now;
    }

    /**
     * Sets the result of {@link #isReady()}.
     *
     * @param now the result from now on
     */
    public void setReady(boolean now) {
        ready = now;
    }

    /**
     * Sets the result of {@link #isExiting()}.
     *
     * @param now the result from now on
     */
    public void setExiting(boolean now) {
        exiting = now;
    }

    /**
     * Sets the statistics of the models; by default there are none.
     *
     * @param figures the statistics from now on
     */
    public void setStatistics(List<ModelStatistics> figures) {
        catalog.setStatistics(figures);
    }

    /**
     * Sets the readiness checks of models; by default the result is there at once, and that of {@link FakeModel#isReady}.
     *
     * @param checks returns the results from now on
     */
    public void setReadiness(Function<ModelRef, CompletionStage<ModelCatalog.Readiness>> checks) {
        catalog.setReadiness(checks);
    }

    /**
     * Sets the index of the models; by default each version of each model is ready.
     *
     * @param states the index from now on
     */
    public void setIndex(List<ModelStatus> states) {
        catalog.setIndex(states);
    }

    /**
     * Returns the requests that reached a model.
     *
     * @return the last thousand, oldest first
     */
    public List<ReceivedRequest> requests() {
        return List.copyOf(requests);
    }

    @Override
    public Cancellation infer(InferRequest request, ResponseObserver observer) {
        ReceivedRequest received = new ReceivedRequest(request, observer);
        FakeModel model;
        try {
            model = catalog.find(request.model());
        } catch (InferenceException e) {
            received.refuse(e.code(), e.publicMessage());
            return received;
        }
        requests.add(received);
        if (requests.size() > MAX_REQUESTS) {
            requests.poll();
        }
        try {
            model.respond(received);
        } catch (InferenceException e) {
            received.fail(e.code(), e.publicMessage());
        }
        return received;
    }

    @Override
    public ModelCatalog models() {
        return catalog;
    }

    @Override
    public FakeControl control() {
        return control;
    }

    @Override
    public FakeSharedMemory sharedMemory() {
        return sharedMemory;
    }

    @Override
    public TensorMemory memory() {
        return memory;
    }

    @Override
    public Refusals refusals() {
        return refusals;
    }

    @Override
    public ServerMetadata metadata() {
        return new ServerMetadata("fake", "0.0", List.of("binary_tensor_data"));
    }

    @Override
    public boolean isLive() {
        return live;
    }

    @Override
    public boolean isExiting() {
        return exiting;
    }

    @Override
    public boolean isReady() {
        return ready;
    }
}
