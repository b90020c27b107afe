package dev.nereid.testkit;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelCatalog;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.Refusals;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.ServerMetadata;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.api.statistics.ModelStatistics;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedDeque;

/**
 * An {@link InferenceServer} with models defined by the test, for tests of front ends. Safe for use by any thread.
 *
 * <p>It keeps the promises of the port, above all that every call's memory is released once, after the last response
 * was closed; it does not check calls against models.
 */
public final class FakeInferenceServer implements InferenceServer {
    private final Refusals refusals = Refusals.counting(false);
    private static final int REMEMBERED = 1000;

    private final TensorMemory memory;
    private final FakeCatalog catalog = new FakeCatalog();
    private final ConcurrentLinkedDeque<ReceivedRequest> requests = new ConcurrentLinkedDeque<>();
    private volatile boolean live = true;
    private volatile boolean ready = true;
    private volatile boolean exiting;
    private final FakeControl control = new FakeControl();
    private final FakeSharedMemory sharedMemory = new FakeSharedMemory();

    /**
     * Creates a server without models that is live and ready.
     *
     * @param memory where inputs and outputs lie
     */
    public FakeInferenceServer(TensorMemory memory) {
        this.memory = requireNonNull(memory, "memory");
    }

    /**
     * Adds a model, or replaces the one of the same name.
     *
     * @param model the model
     * @return this server
     */
    public FakeInferenceServer add(FakeModel model) {
        catalog.add(model);
        return this;
    }

    /**
     * Sets what {@link #isLive()} says.
     *
     * @param now the answer from now on
     */
    public void setLive(boolean now) {
        live = now;
    }

    /**
     * Sets what {@link #isReady()} says.
     *
     * @param now the answer from now on
     */
    public void setReady(boolean now) {
        ready = now;
    }

    /**
     * Sets what {@link #isExiting()} says.
     *
     * @param now the answer from now on
     */
    public void setExiting(boolean now) {
        exiting = now;
    }

    /**
     * Sets what models say that they have done; by default nothing is known of any.
     *
     * @param figures the statistics from now on
     */
    public void setStatistics(List<ModelStatistics> figures) {
        catalog.setStatistics(figures);
    }

    /**
     * Sets what the index of the models says; by default each version of each model is ready.
     *
     * @param states the index from now on
     */
    public void setIndex(List<ModelStatus> states) {
        catalog.setIndex(states);
    }

    /**
     * Returns the calls that reached a model.
     *
     * @return the last thousand, oldest first
     */
    public List<ReceivedRequest> requests() {
        return List.copyOf(requests);
    }

    @Override
    public Cancellation infer(InferRequest call, ResponseObserver observer) {
        ReceivedRequest fake = new ReceivedRequest(call, observer);
        FakeModel model;
        try {
            model = catalog.find(call.model());
        } catch (InferenceException e) {
            fake.refuse(e.code(), e.publicMessage());
            return fake;
        }
        requests.add(fake);
        if (requests.size() > REMEMBERED) {
            requests.poll();
        }
        try {
            model.respond(fake);
        } catch (InferenceException e) {
            fake.fail(e.code(), e.publicMessage());
        }
        return fake;
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
