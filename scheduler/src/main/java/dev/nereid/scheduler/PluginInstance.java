package dev.nereid.scheduler;

import dev.nereid.scheduler.rate.RateLimiter;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.spi.Batch;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelInstance;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An instance with its placement and its turns at the rate limiter. Catches whatever the instance throws. As thread-safe
 * as the instance.
 */
final class PluginInstance {
    private static final Logger LOG = LoggerFactory.getLogger(PluginInstance.class);

    private final ModelInstance instance;
    private final String name;
    private final Device device;
    private final ThreadPlacement placement;
    private final RateProfile rate;
    private Turns turns = new Turns(RateLimiter.OFF.register(Device.CPU, RateProfile.NONE));

    PluginInstance(InstanceSlot slot) {
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
    void register(RateLimiter limiter) {
        turns = new Turns(limiter.register(device, rate));
    }

    /** Returns the turns that the instance gets. */
    Turns turns() {
        return turns;
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
    void close() {
        turns.close();
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
