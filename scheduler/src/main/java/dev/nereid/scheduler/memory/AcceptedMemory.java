package dev.nereid.scheduler.memory;

import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Device;
import dev.nereid.spi.MemoryPlace;
import java.util.Set;

/**
 * The memory in which a backend works. Immutable.
 *
 * @param ofClients whether it may belong to clients, and may go away at any time
 * @param places the kinds of memory in which inputs may lie
 */
public record AcceptedMemory(boolean ofClients, Set<MemoryPlace.Kind> places) {
    public static final AcceptedMemory HOST = new AcceptedMemory(false, BackendTraits.DEFAULT.places());

    public AcceptedMemory {
        places = Set.copyOf(places);
    }

    /** Returns whether an instance accepts inputs in a place. Of the devices, it accepts its own alone. */
    public boolean includes(MemoryPlace place, Device device) {
        return place.isHost() || (place.equals(placeOf(device)) && places.contains(place.kind()));
    }

    /** Describes the places in which an instance accepts inputs. */
    String describe(Device device) {
        MemoryPlace own = placeOf(device);
        return "memory of the host" + (includes(own, device) && !own.isHost() ? " or in " + own : "");
    }

    private static MemoryPlace placeOf(Device device) {
        return device.kind() == Device.Kind.GPU ? new MemoryPlace(MemoryPlace.Kind.GPU, device.id()) : MemoryPlace.HOST;
    }
}
