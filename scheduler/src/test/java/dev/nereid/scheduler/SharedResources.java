package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.rate.ExecutionLimiter;
import dev.nereid.scheduler.rate.RateLimitRegistration;
import dev.nereid.scheduler.rate.RateLimiter;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.spi.Device;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Two resources, and the amounts of them that are taken. One has a limit of its own; of the other there is as much as
 * the largest need, 1. The amounts are those that a test sees. Confined.
 */
public final class SharedResources {
    private static final String LIMITED = "limited";
    private static final String SINGLE = "single";

    private final ExecutionLimiter limiter;
    private final int mostLimited;
    private final int mostSingle;
    private int limitedTaken;
    private int singleTaken;

    /**
     * The resources that the executions of an instance take.
     *
     * @param priority the weight of each
     * @param limited the need of the first resource; at most 2
     * @param single the need of the second resource; at most 1
     */
    public record Need(int priority, int limited, int single) {
        RateProfile profile() {
            return new RateProfile(
                    priority,
                    List.of(
                            new RateProfile.Resource(LIMITED, true, limited),
                            new RateProfile.Resource(SINGLE, false, single)));
        }
    }

    private SharedResources(ExecutionLimiter limiter, int mostLimited, int mostSingle) {
        this.limiter = limiter;
        this.mostLimited = mostLimited;
        this.mostSingle = mostSingle;
    }

    /**
     * Creates resources of which none is taken.
     *
     * @param capacity the capacity of the first resource; at least 2
     */
    public static SharedResources of(int capacity) {
        RateLimiter.ResourceLimit limit = new RateLimiter.ResourceLimit(LIMITED, capacity, OptionalInt.empty());
        return new SharedResources(new RateLimiter(List.of(limit)), capacity, 1);
    }

    /** Creates more of all resources than are taken. */
    public static SharedResources endless() {
        return new SharedResources(ExecutionLimiter.OFF, Integer.MAX_VALUE, Integer.MAX_VALUE);
    }

    public ExecutionLimiter limiter() {
        return limiter;
    }

    /** Records an execution that begins; fails if it exceeds a capacity. */
    public void take(Need need) {
        limitedTaken += need.limited();
        singleTaken += need.single();
        assertThat(limitedTaken).as("taken of what is limited").isLessThanOrEqualTo(mostLimited);
        assertThat(singleTaken).as("taken of what there is one of").isLessThanOrEqualTo(mostSingle);
    }

    /** Records an execution that has ended. */
    public void giveBack(Need need) {
        limitedTaken -= need.limited();
        singleTaken -= need.single();
    }

    /** No instance waits for a permit, and all resources are free. */
    public void checkFree() {
        if (limiter instanceof RateLimiter limits) {
            assertThat(limits.waiting()).as("instances that wait for a permit").isZero();
        }
        AtomicBoolean granted = new AtomicBoolean();
        try (RateLimitRegistration everything =
                limiter.register(Device.CPU, new Need(1, mostLimited, mostSingle).profile())) {
            everything.stage(() -> granted.set(true));
            assertThat(granted).as("everything is free").isTrue();
            everything.releaseUnused();
        }
    }
}
