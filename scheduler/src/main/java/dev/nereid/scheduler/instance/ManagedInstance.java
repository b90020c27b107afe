package dev.nereid.scheduler.instance;

import dev.nereid.scheduler.rate.RateLimitPermits;
import dev.nereid.scheduler.rate.RateLimiter;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.scheduler.request.ClientMemory;
import dev.nereid.spi.Batch;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelInstance;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs one instance with its placement and permits, and catches whatever it throws. Catches whatever the instance
 * throws. As thread-safe as the instance.
 */
public final class ManagedInstance {
    private static final Logger LOG = LoggerFactory.getLogger(ManagedInstance.class);

    private final ModelInstance instance;
    private final String name;
    private final Device device;
    private final ThreadPlacement placement;
    private final RateProfile rate;
    private RateLimitPermits permits = new RateLimitPermits(RateLimiter.OFF.register(Device.CPU, RateProfile.NONE));

    public ManagedInstance(InstanceSlot slot) {
        this.instance = slot.instance();
        this.name = slot.name();
        this.device = slot.device();
        this.placement = slot.placement();
        this.rate = slot.rate();
    }

    /** Returns the name of the instance. */
    String name() {
        return name;
    }

    /**
     * Makes the instance known to the rate limiter, which otherwise lets it run whenever it likes. To be called before
     * anything else.
     *
     * @throws dev.nereid.api.InferenceException as {@link RateLimiter#register} throws it
     */
    public void register(RateLimiter limiter) {
        permits = new RateLimitPermits(limiter.register(device, rate));
    }

    /** Returns the turns that the instance gets. */
    RateLimitPermits permits() {
        return permits;
    }

    /** Returns where the instance runs. */
    Device device() {
        return device;
    }

    /** Returns whether this runs a certain instance. */
    @SuppressWarnings("ReferenceEquality") // Plugins may make instances that are equal.
    boolean is(ModelInstance other) {
        return instance == other;
    }

    /** Puts the calling thread where the instance's is to run. */
    void place() {
        placement.place();
    }

    /** Says whether the instance's thread is not to run anywhere. */
    boolean isPlaced() {
        return !placement.equals(ThreadPlacement.ANYWHERE);
    }

    /**
     * Executes a batch; returns what was thrown, {@code null} if nothing was.
     *
     * @param clientMemory whether the batch lies in memory of a client, whose faults are to be waited for
     */
    @Nullable
    Throwable execute(Batch batch, boolean clientMemory) {
        try {
            instance.execute(batch);
            if (clientMemory) {
                ClientMemory.awaitFaults();
            }
            return null;
        } catch (Throwable thrown) {
            return thrown;
        }
    }

    /** Says whether the instance can serve; not if it cannot even say so. */
    boolean isReady() {
        try {
            return instance.isReady();
        } catch (Throwable e) {
            log("readiness check of instance failed", e);
            return false;
        }
    }

    /** Frees what the instance holds, and its place at the rate limiter; what a backend throws is logged. */
    public void close() {
        permits.close();
        try {
            instance.close();
        } catch (Throwable e) {
            log("close of instance failed", e);
        }
    }

    private void log(String event, Throwable thrown) {
        LOG.atError().addKeyValue("instance", name).setCause(thrown).log(event);
    }
}
