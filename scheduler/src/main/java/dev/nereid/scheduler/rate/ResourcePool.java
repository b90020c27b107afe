package dev.nereid.scheduler.rate;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.Device;
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
    private final List<RateLimiter.ResourceLimit> limits;
    private final List<Need> needs = new ArrayList<>();
    private final Map<Need.Key, Integer> capacity = new HashMap<>();
    private final Map<Need.Key, Long> taken = new HashMap<>();

    /** Creates a pool without instances; of two limits of a resource and device, the smaller one counts. */
    ResourcePool(List<RateLimiter.ResourceLimit> limits) {
        this.limits = List.copyOf(limits);
    }

    /** Adds an instance; a refusal has no effect on the pool. */
    void add(Need need) {
        new TreeMap<>(need.counts()).forEach(this::checkLimit);
        new TreeMap<>(need.counts()).keySet().forEach(key -> checkKind(key, need));
        needs.add(need);
        measure();
    }

    private void checkLimit(Need.Key key, int count) {
        OptionalInt limit = limit(key);
        if (limit.isPresent() && limit.getAsInt() < count) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "Resource count for \"" + key.name() + "\" is limited to " + limit.getAsInt()
                            + " which will prevent scheduling of one or more model instances, the minimum required"
                            + " count is " + count);
        }
    }

    private void checkKind(Need.Key key, Need added) {
        for (Need.Key other : capacity.keySet()) {
            checkKinds(key, other);
        }
        for (Need.Key other : added.counts().keySet()) {
            checkKinds(key, other);
        }
    }

    private static void checkKinds(Need.Key first, Need.Key second) {
        if (first.name().equals(second.name()) && first.isGlobal() != second.isGlobal()) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "Resource \"" + first.name()
                            + "\" is present as both global and device-specific resource in the model configuration.");
        }
    }

    /** Removes an instance; its taken resources stay taken until they are released. */
    void remove(Need need) {
        needs.remove(need);
        measure();
    }

    private void measure() {
        capacity.clear();
        for (Need need : needs) {
            need.counts().forEach((key, count) -> capacity.merge(key, limit(key).orElse(count), Math::max));
        }
    }

    /** Returns the capacity of a resource by its limits; empty if it has none. */
    private OptionalInt limit(Need.Key key) {
        boolean named = false;
        int max = 0;
        Map<OptionalInt, Integer> byDevice = new HashMap<>();
        for (RateLimiter.ResourceLimit limit : limits) {
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
    int capacity(Need.Key key) {
        return capacity.getOrDefault(key, 0);
    }

    long taken(Need.Key key) {
        return taken.getOrDefault(key, 0L);
    }

    boolean fits(Need need) {
        for (Map.Entry<Need.Key, Integer> count : need.counts().entrySet()) {
            if (count.getValue() > capacity(count.getKey()) - taken(count.getKey())) {
                return false;
            }
        }
        return true;
    }

    /** Takes the resources of an execution, which are available. */
    void take(Need need) {
        need.counts().forEach((key, count) -> taken.merge(key, (long) count, Long::sum));
    }

    void release(Need need) {
        need.counts().forEach((key, count) -> taken.merge(key, -(long) count, Long::sum));
    }

    /** The resources that one execution of an instance takes. Immutable. */
    record Need(Map<Key, Integer> counts) {
        /** A resource on the device of a number, or {@link #ALL} if all devices share it. */
        record Key(String name, int device) implements Comparable<Key> {
            /** Represents all devices together. */
            static final int ALL = -1;

            boolean isGlobal() {
                return device == ALL;
            }

            @Override
            public int compareTo(Key other) {
                int names = name.compareTo(other.name);
                return names == 0 ? Integer.compare(device, other.device) : names;
            }
        }

        Need {
            counts = Map.copyOf(counts);
        }

        /** Returns the resources that an instance takes. Of a resource that is listed twice, the last amount counts. */
        static Need of(Device device, RateProfile profile) {
            int number = device.kind() == Device.Kind.GPU ? device.id() : 0;
            Map<Key, Integer> counts = new TreeMap<>();
            for (RateProfile.Resource resource : profile.resources()) {
                counts.put(new Key(resource.name(), resource.global() ? Key.ALL : number), resource.count());
            }
            return new Need(counts);
        }
    }
}
