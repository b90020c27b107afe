package dev.nereid.api;

import static java.util.Objects.requireNonNull;

import java.lang.foreign.MemorySegment;
import java.util.Optional;

/**
 * An output that a client requests, with its form and target. Immutable as a view of its memory.
 *
 * @param name the name of the output; not necessarily one that the model knows
 * @param classes if greater than 0, the output is replaced by its largest elements, this number of each item: byte
 *     strings {@code value:index} or {@code value:index:label}
 * @param target memory of the caller to which the output is written; stays valid until the request's {@code release} is
 *     run. The output of the response then lies in it
 * @param anyPlace whether the output may lie in memory of a device; otherwise it is moved to its target or the host
 */
public record RequestedOutput(String name, long classes, Optional<OutputTarget> target, boolean anyPlace) {
    /** Checks the components. */
    public RequestedOutput {
        requireNonNull(name, "name");
        requireNonNull(target, "target");
        if (classes < 0 || (classes > 0 && target.isPresent())) {
            throw new IllegalArgumentException("classes: " + classes + " (expected: >= 0, and 0 with a target)");
        }
        if (anyPlace && (classes > 0 || target.isPresent())) {
            throw new IllegalArgumentException("anyPlace: true (expected: false with a target or classes)");
        }
    }

    /**
     * Requests an output as the model makes it, in memory of the host.
     *
     * @param name the name of the output
     * @return the output
     */
    public static RequestedOutput of(String name) {
        return new RequestedOutput(name, 0, Optional.empty(), false);
    }

    /**
     * Requests an output as the model makes it, wherever it lies: on a device, it is not moved to the host, and may have a
     * {@link dev.nereid.spi.Tensor#fence() fence} while the device writes it. Such an output may be the input of the next
     * request as it is; its response stays open until the {@code release} of that request has run.
     *
     * @param name the name of the output
     * @return the output
     */
    public static RequestedOutput inAnyPlace(String name) {
        return new RequestedOutput(name, 0, Optional.empty(), true);
    }

    /**
     * Requests the classes with the largest elements instead of an output.
     *
     * @param name the name of the output
     * @param classes the number of classes, 1 or more
     * @return the output
     */
    public static RequestedOutput classified(String name, long classes) {
        return new RequestedOutput(name, classes, Optional.empty(), false);
    }

    /**
     * Requests an output in memory of the caller on the host.
     *
     * @param name the name of the output
     * @param target the memory to write it to
     * @return the output
     */
    public static RequestedOutput into(String name, MemorySegment target) {
        return into(name, OutputTarget.host(target));
    }

    /**
     * Requests an output in memory of the caller.
     *
     * @param name the name of the output
     * @param target the memory to write it to
     * @return the output
     */
    public static RequestedOutput into(String name, OutputTarget target) {
        return new RequestedOutput(name, 0, Optional.of(target), false);
    }
}
