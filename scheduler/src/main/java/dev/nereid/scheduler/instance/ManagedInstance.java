package dev.nereid.scheduler.instance;

import dev.nereid.scheduler.memory.ClientMemory;
import dev.nereid.scheduler.queue.EndedSequence;
import dev.nereid.scheduler.rate.ExecutionLimiter;
import dev.nereid.scheduler.rate.RateLimitPermits;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.spi.Batch;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelInstance;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Runs one instance with its placement and permits, and catches its failures. As thread-safe as the instance. */
public final class ManagedInstance {
    private static final Logger LOG = LoggerFactory.getLogger(ManagedInstance.class);

    private final ModelInstance instance;
    private final String name;
    private final Device device;
    private final ThreadPlacement placement;
    private final RateProfile rate;
    private final InstanceAvailability availability;
    private final ReadinessCheck readiness;
    private RateLimitPermits permits =
            new RateLimitPermits(ExecutionLimiter.OFF.register(Device.CPU, RateProfile.NONE));

    public ManagedInstance(InstanceSlot slot) {
        this.instance = slot.instance();
        this.name = slot.name();
        this.device = slot.device();
        this.placement = slot.placement();
        this.rate = slot.rate();
        this.availability = slot.availability();
        this.readiness = new ReadinessCheck(
                name, instance::checkReady, failure -> log("readiness check of instance failed", failure));
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

    /** Returns whether this runs an instance, by identity. */
    @SuppressWarnings("ReferenceEquality") // Plugins may make instances that are equal.
    boolean is(ModelInstance other) {
        return instance == other;
    }

    void place() {
        placement.place();
    }

    boolean isPlaced() {
        return !placement.equals(ThreadPlacement.ANYWHERE);
    }

    /**
     * Executes a batch; returns the throwable of the instance, {@code null} for none.
     *
     * @param clientMemory whether the batch lies in memory of a client, so that this waits for its faults
     */
    @Nullable
    Throwable execute(Batch batch, boolean clientMemory) {
        try {
            instance.execute(batch);
            if (clientMemory) {
                ClientMemory.awaitFaults();
            }
            return null;
        } catch (Throwable thrown) { // of the backend, or of memory of the client that it lost
            return thrown;
        }
    }

    /** Notifies the instance that a sequence ended without its last request. Errors of the backend are logged. */
    void sequenceEnded(EndedSequence ended) {
        call("end of sequence failed", () -> instance.sequenceEnded(ended.id(), ended.reason()));
    }

    /**
     * Notifies the instance that an execution takes longer than its limit. Errors of the backend are logged. Called by
     * any thread.
     */
    void executionOverdue() {
        call("report of an overdue execution failed", instance::executionOverdue);
    }

    ReadinessCheck readiness() {
        return readiness;
    }

    /** Closes the instance and its registration with the rate limiter. Errors of the backend are logged. */
    public void close() {
        permits.close();
        availability.end();
        call("close of instance failed", instance::close);
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
}
