package dev.nereid.scheduler;

import dev.nereid.spi.Device;
import dev.nereid.spi.ModelInstance;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The instances that share one thread, and the turn they take: most often one; all on a graphics processor that their
 * executions block. Confined to that thread, but for {@link #areReady} and
 * {@link #load}, which any thread may ask.
 */
final class DeviceSeats {
    private final List<PluginInstance> instances;
    private int turn;

    /** Puts instances together; at least one. */
    DeviceSeats(List<PluginInstance> instances) {
        this.instances = List.copyOf(instances);
    }

    /**
     * Says which instances share a thread.
     *
     * @param instances all of them, in order
     * @param blocksDevice whether executions block their graphics processor
     * @return one entry for each thread, in the order of its first instance
     */
    static List<DeviceSeats> of(List<PluginInstance> instances, boolean blocksDevice) {
        List<List<PluginInstance>> threads = new ArrayList<>();
        Map<Device, List<PluginInstance>> byDevice = new LinkedHashMap<>();
        for (PluginInstance instance : instances) {
            Device device = instance.device();
            List<PluginInstance> together =
                    blocksDevice && device.kind() == Device.Kind.GPU ? byDevice.get(device) : null;
            if (together == null) {
                together = new ArrayList<>();
                threads.add(together);
                byDevice.put(device, together);
            }
            together.add(instance);
        }
        return threads.stream().map(DeviceSeats::new).toList();
    }

    /** Returns the instance whose turn it is. */
    PluginInstance next() {
        PluginInstance next = instances.get(turn);
        turn = turn + 1 == instances.size() ? 0 : turn + 1;
        return next;
    }

    /** Returns the turns of the instance whose turn it is. */
    Turns turns() {
        return instances.get(turn).turns();
    }

    /** Tells how much the instances have had by the rate limiter. Any thread may ask. */
    long load() {
        long load = 0;
        for (int i = 0; i < instances.size(); i++) {
            load += instances.get(i).turns().load();
        }
        return load;
    }

    /** Has the thread wait for no turn any more. Any thread may call this. */
    void withdrawTurns() {
        instances.forEach(instance -> instance.turns().withdraw());
    }

    /** Asks the rate limiter for no more turns. */
    void leaveLimiter() {
        instances.forEach(instance -> instance.turns().close());
    }

    /** Returns the number of instances. */
    int size() {
        return instances.size();
    }

    /** Returns the name of the instance; if there are several, that of their device. */
    String name() {
        PluginInstance first = instances.getFirst();
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
        instances.reversed().forEach(PluginInstance::close);
    }
}
