package dev.nereid.scheduler.instance;

import dev.nereid.scheduler.rate.RateLimitPermits;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelInstance;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Instances that share one thread: usually one, or all of a blocked device. Confined to that thread, but for
 * {@link #areReady} and {@link #load}, which any thread may ask.
 */
public final class DeviceInstances {
    private final List<ManagedInstance> instances;
    private int nextIndex;

    /** Puts instances together; at least one. */
    public DeviceInstances(List<ManagedInstance> instances) {
        this.instances = List.copyOf(instances);
    }

    /**
     * Says which instances share a thread.
     *
     * @param instances all of them, in order
     * @param blocksDevice whether executions block their graphics processor
     * @return one entry for each thread, in the order of its first instance
     */
    static List<DeviceInstances> of(List<ManagedInstance> instances, boolean blocksDevice) {
        List<List<ManagedInstance>> threads = new ArrayList<>();
        Map<Device, List<ManagedInstance>> byDevice = new LinkedHashMap<>();
        for (ManagedInstance instance : instances) {
            Device device = instance.device();
            List<ManagedInstance> together =
                    blocksDevice && device.kind() == Device.Kind.GPU ? byDevice.get(device) : null;
            if (together == null) {
                together = new ArrayList<>();
                threads.add(together);
                byDevice.put(device, together);
            }
            together.add(instance);
        }
        return threads.stream().map(DeviceInstances::new).toList();
    }

    /** Returns the instance whose turn it is. */
    ManagedInstance next() {
        ManagedInstance next = instances.get(nextIndex);
        nextIndex = nextIndex + 1 == instances.size() ? 0 : nextIndex + 1;
        return next;
    }

    /** Returns the turns of the instance whose turn it is. */
    RateLimitPermits permits() {
        return instances.get(nextIndex).permits();
    }

    /** Tells how much the instances have had by the rate limiter. Any thread may ask. */
    long load() {
        long load = 0;
        for (int i = 0; i < instances.size(); i++) {
            load += instances.get(i).permits().load();
        }
        return load;
    }

    /** Has the thread wait for no turn any more. Any thread may call this. */
    void cancelPermits() {
        instances.forEach(instance -> instance.permits().cancel());
    }

    /** Asks the rate limiter for no more turns. */
    void closePermits() {
        instances.forEach(instance -> instance.permits().close());
    }

    /** Returns the number of instances. */
    int size() {
        return instances.size();
    }

    /** Returns the name of the instance; if there are several, that of their device. */
    String name() {
        ManagedInstance first = instances.getFirst();
        return instances.size() == 1 ? first.name() : first.device().toString();
    }

    boolean has(ModelInstance instance) {
        return instances.stream().anyMatch(candidate -> candidate.is(instance));
    }

    boolean areReady() {
        for (int i = 0; i < instances.size(); i++) {
            if (!instances.get(i).isReady()) {
                return false;
            }
        }
        return true;
    }

    /** Puts the calling thread where the first instance's is to run. */
    void place() {
        instances.getFirst().place();
    }

    /** Says whether the thread has a place of its own. */
    boolean arePlaced() {
        return instances.getFirst().isPlaced();
    }

    /** Closes the instances, the last first. */
    void close() {
        instances.reversed().forEach(ManagedInstance::close);
    }
}
