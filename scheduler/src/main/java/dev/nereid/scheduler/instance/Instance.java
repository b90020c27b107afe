package dev.nereid.scheduler.instance;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.scheduler.memory.ClientMemory;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.rate.ExecutionLimiter;
import dev.nereid.scheduler.rate.RateLimitPermits;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelInstance;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An instance of a model, as a scheduler runs it: the backend's object with its name, device, placement and permits. Its
 * failures are caught here. As thread-safe as the backend's object.
 */
public final class Instance {
    private static final Logger LOG = LoggerFactory.getLogger(Instance.class);

    private final ModelInstance backend;
    private final String name;
    private final Device device;
    private final Optional<DeviceMemory> memory;
    private final ThreadPlacement placement;
    private final RateProfile rate;
    private final InstanceAvailability availability;
    private final ReadinessCheck readiness;
    private final Runnable close;
    private RateLimitPermits permits =
            new RateLimitPermits(ExecutionLimiter.OFF.register(Device.CPU, RateProfile.NONE));

    /**
     * Creates an instance.
     *
     * @param name the instance's name, such as {@code resnet50_0_1}
     * @param memory the memory of its GPU, with which executions fail when it has failed; empty for an instance elsewhere
     * @param backend executes, already isolated from its plugin
     * @param rate the limited resources that its executions take
     * @param placement places the thread of the instance
     * @param availability whether the instance takes batches
     * @param close closes the backend's object, and what belongs to it
     */
    public Instance(
            String name,
            Device device,
            Optional<DeviceMemory> memory,
            ModelInstance backend,
            RateProfile rate,
            ThreadPlacement placement,
            InstanceAvailability availability,
            Runnable close) {
        this.name = requireNonNull(name, "name");
        this.device = requireNonNull(device, "device");
        this.memory = requireNonNull(memory, "memory");
        this.backend = requireNonNull(backend, "backend");
        this.rate = requireNonNull(rate, "rate");
        this.placement = requireNonNull(placement, "placement");
        this.availability = requireNonNull(availability, "availability");
        this.close = requireNonNull(close, "close");
        this.readiness = new ReadinessCheck(
                name, this::checkReady, failure -> log("readiness check of instance failed", failure));
    }

    /** Creates an instance that always takes batches. The backend's object is closed with it. */
    public Instance(String name, Device device, ModelInstance backend, RateProfile rate, ThreadPlacement placement) {
        this(
                name,
                device,
                Optional.empty(),
                backend,
                rate,
                placement,
                new InstanceAvailability(),
                requireNonNull(backend, "backend")::close);
    }

    /** Creates an instance that takes no limited resources, runs anywhere, and closes the backend's object. */
    public Instance(String name, Device device, ModelInstance backend) {
        this(name, device, backend, RateProfile.NONE, ThreadPlacement.ANYWHERE);
    }

    String name() {
        return name;
    }

    /**
     * Registers the instance with a rate limiter; without that its executions are not limited. Called before any other
     * method.
     *
     * @throws dev.nereid.api.InferenceException as {@link ExecutionLimiter#register}
     */
    public void register(ExecutionLimiter limiter) {
        permits = new RateLimitPermits(limiter.register(device, rate));
    }

    RateLimitPermits permits() {
        return permits;
    }

    InstanceAvailability availability() {
        return availability;
    }

    Device device() {
        return device;
    }

    void place() {
        placement.place();
    }

    boolean isPlaced() {
        return !placement.equals(ThreadPlacement.ANYWHERE);
    }

    /**
     * Executes a batch; returns the throwable of the backend, {@code null} for none.
     *
     * @param clientMemory whether the batch lies in memory of a client, so that this waits for its faults
     */
    @Nullable
    Throwable execute(Batch batch, boolean clientMemory) {
        try {
            if (memory.isPresent()) {
                Optional<String> failure = memory.get().failure();
                if (failure.isPresent()) {
                    throw new BackendException(ErrorCode.UNAVAILABLE, failure.get());
                }
            }
            backend.execute(batch);
            if (clientMemory) {
                ClientMemory.awaitFaults();
            }
            return null;
        } catch (Throwable thrown) { // of the backend, or of memory of the client that it lost
            return thrown;
        }
    }

    /** Notifies the backend that a sequence ended without its last request. Its errors are logged. */
    void sequenceEnded(InstanceHandle.EndedSequence ended) {
        call("end of sequence failed", () -> backend.sequenceEnded(ended.id(), ended.reason()));
    }

    /** Notifies the backend of an execution over its limit. Its errors are logged. Called by any thread. */
    void executionOverdue() {
        call("report of an overdue execution failed", backend::executionOverdue);
    }

    ReadinessCheck readiness() {
        return readiness;
    }

    /** Returns what the backend says, or the failure of its GPU. */
    CompletionStage<Void> checkReady() {
        Optional<String> failure = memory.flatMap(DeviceMemory::failure);
        return failure.isPresent()
                ? CompletableFuture.failedStage(new BackendException(ErrorCode.UNAVAILABLE, failure.get()))
                : backend.checkReady();
    }

    /** Closes the instance and its registration with the rate limiter. Errors of the backend are logged. */
    public void close() {
        permits.close();
        availability.end();
        call("close of instance failed", close);
    }

    private void call(String failure, Runnable method) {
        try {
            method.run();
        } catch (Throwable e) { // of the backend
            log(failure, e);
        }
    }

    private void log(String event, Throwable thrown) {
        LOG.atError().addKeyValue("instance", name).setCause(thrown).log(event + " (instance '{}')", name);
    }

    /** Places the thread of an instance according to its host policy. */
    @FunctionalInterface
    public interface ThreadPlacement {
        /** Leaves the placement to the operating system. */
        ThreadPlacement ANYWHERE = () -> {};

        /** Places the calling thread; called once, first, on each thread of the instance. Must not throw. */
        void place();
    }
}
