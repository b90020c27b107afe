package dev.nereid.scheduler.rate;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.TreeMap;

/**
 * Tracks the capacity and use of resources. Confined to its limiter.
 *
 * <p>There is as much of a resource as its limits say, or, without any, as the instance takes that takes the most. So
 * there may be less than is taken for a while after such an instance is gone.
 */
final class ResourcePool {
    private final List<ResourceLimit> limits;
    private final List<ResourceNeed> needs = new ArrayList<>();
    private final Map<ResourceNeed.Key, Integer> capacity = new HashMap<>();
    private final Map<ResourceNeed.Key, Long> taken = new HashMap<>();

    /**
     * Begins without instances.
     *
     * @param limits how much there is of what; of two for one resource and device the smaller one counts
     */
    ResourcePool(List<ResourceLimit> limits) {
        this.limits = List.copyOf(limits);
    }

    /** Makes an instance known; nothing has changed if it is refused. */
    void add(ResourceNeed need) {
        new TreeMap<>(need.counts()).forEach(this::checkLimit);
        new TreeMap<>(need.counts()).keySet().forEach(key -> checkKind(key, need));
        needs.add(need);
        measure();
    }

    private void checkLimit(ResourceNeed.Key key, int count) {
        OptionalInt limit = limit(key);
        if (limit.isPresent() && limit.getAsInt() < count) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "Resource count for \"" + key.name() + "\" is limited to " + limit.getAsInt()
                            + " which will prevent scheduling of one or more model instances, the minimum required"
                            + " count is " + count);
        }
    }

    private void checkKind(ResourceNeed.Key key, ResourceNeed added) {
        for (ResourceNeed.Key other : capacity.keySet()) {
            checkKinds(key, other);
        }
        for (ResourceNeed.Key other : added.counts().keySet()) {
            checkKinds(key, other);
        }
    }

    private static void checkKinds(ResourceNeed.Key one, ResourceNeed.Key other) {
        if (one.name().equals(other.name()) && one.isGlobal() != other.isGlobal()) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "Resource \"" + one.name()
                            + "\" is present as both global and device-specific resource in the model configuration.");
        }
    }

    /** Forgets an instance that was added; what it has taken stays taken until it is given back. */
    void remove(ResourceNeed need) {
        needs.remove(need);
        measure();
    }

    private void measure() {
        capacity.clear();
        for (ResourceNeed need : needs) {
            need.counts().forEach((key, count) -> capacity.merge(key, limit(key).orElse(count), Math::max));
        }
    }

    /** Returns how much there is of a resource by the limits; empty if none names it. */
    private OptionalInt limit(ResourceNeed.Key key) {
        boolean named = false;
        int most = 0;
        Map<OptionalInt, Integer> byDevice = new HashMap<>();
        for (ResourceLimit limit : limits) {
            if (limit.name().equals(key.name())) {
                named = true;
                byDevice.merge(limit.device(), limit.count(), Math::min);
            }
        }
        for (Map.Entry<OptionalInt, Integer> limit : byDevice.entrySet()) {
            if (key.isGlobal() || limit.getKey().orElse(key.device()) == key.device()) {
                most = Math.max(most, limit.getValue());
            }
        }
        return named ? OptionalInt.of(most) : OptionalInt.empty();
    }

    /** Returns how much there is of a resource; 0 if no instance takes any. */
    int capacity(ResourceNeed.Key key) {
        return capacity.getOrDefault(key, 0);
    }

    /** Returns how much of a resource is taken. */
    long taken(ResourceNeed.Key key) {
        return taken.getOrDefault(key, 0L);
    }

    /** Says whether there is enough of everything. */
    boolean fits(ResourceNeed need) {
        for (Map.Entry<ResourceNeed.Key, Integer> count : need.counts().entrySet()) {
            if (count.getValue() > capacity(count.getKey()) - taken(count.getKey())) {
                return false;
            }
        }
        return true;
    }

    /** Takes what fits. */
    void take(ResourceNeed need) {
        need.counts().forEach((key, count) -> taken.merge(key, (long) count, Long::sum));
    }

    /** Gives back what was taken. */
    void release(ResourceNeed need) {
        need.counts().forEach((key, count) -> taken.merge(key, -(long) count, Long::sum));
    }
}
