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
 * <p>The capacity of a resource is its limit, or, without any, the maximum that one instance takes. After such an
 * instance is removed, more than the capacity may be taken for a while.
 */
final class ResourcePool {
    private final List<ResourceLimit> limits;
    private final List<ResourceNeed> needs = new ArrayList<>();
    private final Map<ResourceNeed.Key, Integer> capacity = new HashMap<>();
    private final Map<ResourceNeed.Key, Long> taken = new HashMap<>();

    /**
     * Creates a pool without instances.
     *
     * @param limits the capacities; of two for one resource and device the smaller one counts
     */
    ResourcePool(List<ResourceLimit> limits) {
        this.limits = List.copyOf(limits);
    }

    /** Adds an instance; a refusal has no effect on the pool. */
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

    private static void checkKinds(ResourceNeed.Key first, ResourceNeed.Key second) {
        if (first.name().equals(second.name()) && first.isGlobal() != second.isGlobal()) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "Resource \"" + first.name()
                            + "\" is present as both global and device-specific resource in the model configuration.");
        }
    }

    /** Removes an instance; its taken resources stay taken until they are released. */
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

    /** Returns the capacity of a resource by its limits; empty if it has none. */
    private OptionalInt limit(ResourceNeed.Key key) {
        boolean named = false;
        int max = 0;
        Map<OptionalInt, Integer> byDevice = new HashMap<>();
        for (ResourceLimit limit : limits) {
            if (limit.name().equals(key.name())) {
                named = true;
                byDevice.merge(limit.device(), limit.count(), Math::min);
            }
        }
        for (Map.Entry<OptionalInt, Integer> limit : byDevice.entrySet()) {
            if (key.isGlobal() || limit.getKey().orElse(key.device()) == key.device()) {
                max = Math.max(max, limit.getValue());
            }
        }
        return named ? OptionalInt.of(max) : OptionalInt.empty();
    }

    /** Returns the capacity of a resource; 0 if no instance takes any. */
    int capacity(ResourceNeed.Key key) {
        return capacity.getOrDefault(key, 0);
    }

    long taken(ResourceNeed.Key key) {
        return taken.getOrDefault(key, 0L);
    }

    boolean fits(ResourceNeed need) {
        for (Map.Entry<ResourceNeed.Key, Integer> count : need.counts().entrySet()) {
            if (count.getValue() > capacity(count.getKey()) - taken(count.getKey())) {
                return false;
            }
        }
        return true;
    }

    /** Takes the resources of an execution, which are available. */
    void take(ResourceNeed need) {
        need.counts().forEach((key, count) -> taken.merge(key, (long) count, Long::sum));
    }

    void release(ResourceNeed need) {
        need.counts().forEach((key, count) -> taken.merge(key, -(long) count, Long::sum));
    }
}
