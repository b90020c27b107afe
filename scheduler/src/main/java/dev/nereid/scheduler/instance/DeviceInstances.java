package dev.nereid.scheduler.instance;

import dev.nereid.scheduler.rate.RateLimitPermits;
import dev.nereid.spi.Device;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Instances that share one thread: usually one, or all of a blocked device. Confined to that thread, except for
 * {@link #forEach}, {@link #areUnavailable}, {@link #load} and {@link #cancelPermits}, which any thread may call.
 */
public final class DeviceInstances {
    private final List<Instance> instances;
    private int nextIndex;

    /** Groups instances; at least one. */
    public DeviceInstances(List<Instance> instances) {
        this.instances = List.copyOf(instances);
    }

    /**
     * Groups the instances that share a thread.
     *
     * @param instances all instances, in order
     * @param blocksDevice whether executions block their GPU
     * @return one entry for each thread, in the order of its first instance
     */
    static List<DeviceInstances> of(List<Instance> instances, boolean blocksDevice) {
        List<List<Instance>> threads = new ArrayList<>();
        Map<Device, List<Instance>> byDevice = new LinkedHashMap<>();
        for (Instance instance : instances) {
            Device device = instance.device();
            List<Instance> sharing = blocksDevice && device.kind() == Device.Kind.GPU ? byDevice.get(device) : null;
            if (sharing == null) {
                sharing = new ArrayList<>();
                threads.add(sharing);
                byDevice.put(device, sharing);
            }
            sharing.add(instance);
        }
        return threads.stream().map(DeviceInstances::new).toList();
    }

    /** Returns the next instance, round robin. */
    Instance next() {
        Instance next = instances.get(nextIndex);
        nextIndex = nextIndex + 1 == instances.size() ? 0 : nextIndex + 1;
        return next;
    }

    /** Returns the next instance that takes batches, round robin; any if none does. */
    Instance nextAvailable() {
        skipUnavailable();
        return next();
    }

    /** Makes an instance that takes batches the next one, if there is any. */
    void skipUnavailable() {
        for (int skipped = 1; skipped < instances.size() && !isNextAvailable(); skipped++) {
            next();
        }
    }

    /** Returns whether the next instance takes batches. */
    boolean isNextAvailable() {
        return instances.get(nextIndex).availability().isAvailable();
    }

    /** Returns whether no instance takes batches. Called by any thread. */
    boolean areUnavailable() {
        for (int i = 0; i < instances.size(); i++) {
            if (instances.get(i).availability().isAvailable()) {
                return false;
            }
        }
        return true;
    }

    /** Returns the instances. Called by any thread. */
    List<Instance> all() {
        return instances;
    }

    /** Passes each instance to an action. Called by any thread. */
    void forEach(Consumer<Instance> action) {
        instances.forEach(action);
    }

    /** Returns the permits of the next instance. */
    RateLimitPermits permits() {
        return instances.get(nextIndex).permits();
    }

    /** Returns the sum of the instances' loads by the rate limiter. Called by any thread. */
    long load() {
        long load = 0;
        for (int i = 0; i < instances.size(); i++) {
            load += instances.get(i).permits().load();
        }
        return load;
    }

    /** Ends all waits for permits. Called by any thread. */
    void cancelPermits() {
        instances.forEach(instance -> instance.permits().cancel());
    }

    /** Closes the registrations with the rate limiter. */
    void closePermits() {
        instances.forEach(instance -> instance.permits().close());
    }

    int size() {
        return instances.size();
    }

    /** Returns the name of the instance; of several, the name of their device. */
    String name() {
        Instance first = instances.getFirst();
        return instances.size() == 1 ? first.name() : first.device().toString();
    }

    Device device() {
        return instances.getFirst().device();
    }

    boolean has(Instance instance) {
        return instances.contains(instance);
    }

    /** Places the calling thread as the first instance's policy says. */
    void place() {
        instances.getFirst().place();
    }

    boolean arePlaced() {
        return instances.getFirst().isPlaced();
    }

    /** Closes the instances, the last first. */
    void close() {
        instances.reversed().forEach(Instance::close);
    }
}
