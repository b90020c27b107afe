package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

/**
 * The device of an instance. Immutable.
 *
 * @param kind the kind of device
 * @param id the number of the device among all of its kind; 0 for {@link Kind#CPU} and {@link Kind#MODEL}
 * @since 1.0
 */
public record Device(Kind kind, int id) {
    /** The processor. */
    public static final Device CPU = new Device(Kind.CPU, 0);

    /** The kinds of device. Open: later versions may add constants. */
    public enum Kind {
        /** The processor. */
        CPU,
        /** One graphics processor. */
        GPU,
        /** The backend decides, for instance a model spread over several devices. */
        MODEL
    }

    /** Checks the components. */
    public Device {
        requireNonNull(kind, "kind");
        if (id < 0) {
            throw new IllegalArgumentException("id: " + id + " (expected: >= 0)");
        }
    }

    /** Returns the device as in names of threads and instances: {@code cpu}, {@code gpu1}, {@code model}. */
    @Override
    public String toString() {
        return switch (kind) {
            case CPU -> "cpu";
            case GPU -> "gpu" + id;
            case MODEL -> "model";
        };
    }
}
