package dev.nereid.scheduler.rate;

import dev.nereid.spi.Device;
import java.util.Map;
import java.util.TreeMap;

/** The resources that one execution of an instance takes. Immutable. */
record ResourceNeed(Map<Key, Integer> counts) {
    /**
     * A resource on one device or on all devices.
     *
     * @param device the number of its device; {@link #ALL} if all devices share it
     */
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

    ResourceNeed {
        counts = Map.copyOf(counts);
    }

    /** Returns the resources that an instance takes. Of a resource that is listed twice, the last amount counts. */
    static ResourceNeed of(Device device, RateProfile profile) {
        int number = device.kind() == Device.Kind.GPU ? device.id() : 0;
        Map<Key, Integer> counts = new TreeMap<>();
        for (RateResource resource : profile.resources()) {
            counts.put(new Key(resource.name(), resource.global() ? Key.ALL : number), resource.count());
        }
        return new ResourceNeed(counts);
    }
}
