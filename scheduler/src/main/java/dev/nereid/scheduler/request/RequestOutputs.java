package dev.nereid.scheduler.request;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.OutputTarget;
import dev.nereid.api.RequestedOutput;
import dev.nereid.spi.MemoryPlace;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The outputs of a checked request, with their forms and targets. Immutable as a view of the targets.
 *
 * @param names the names of the requested outputs, in the order of the configuration; never empty unless the model has
 *     no outputs
 * @param requested the outputs as the client listed them; empty for all outputs as the model computes them
 * @param hasTargets whether an output is to be written to memory of the client
 * @param isClassified whether an output is to be replaced by its classes
 * @param inAnyPlace whether an output may lie in memory of a device
 */
public record RequestOutputs(
        List<String> names,
        List<RequestedOutput> requested,
        boolean hasTargets,
        boolean isClassified,
        boolean inAnyPlace) {
    /** Checks the components. Lists are taken over as they are, since this is the hot path: do not change them. */
    public RequestOutputs {
        requireNonNull(names, "names");
        requireNonNull(requested, "requested");
    }

    /** Returns all outputs of a model as it computes them; names are in the order of the configuration. */
    public static RequestOutputs all(List<String> names) {
        return new RequestOutputs(names, List.of(), false, false, false);
    }

    /** Returns outputs as the client listed them; names are in the order of the configuration. */
    public static RequestOutputs of(List<String> names, List<RequestedOutput> requested) {
        boolean targets = false;
        boolean classes = false;
        boolean anyPlace = false;
        for (int i = 0; i < requested.size(); i++) {
            RequestedOutput output = requested.get(i);
            targets |= output.target().isPresent();
            classes |= output.classes() > 0;
            anyPlace |= output.anyPlace();
        }
        return new RequestOutputs(names, requested, targets, classes, anyPlace);
    }

    /** Returns the memory of the client for an output; {@code null} for none. */
    @Nullable
    public OutputTarget target(String output) {
        for (int i = 0; hasTargets && i < requested.size(); i++) {
            RequestedOutput one = requested.get(i);
            if (one.target().isPresent() && one.name().equals(output)) {
                return one.target().get();
            }
        }
        return null;
    }

    /** Returns whether an output stays in memory of a device, or goes to memory of the client on it. */
    public boolean takes(String output, MemoryPlace device) {
        for (int i = 0; (inAnyPlace || hasTargets) && i < requested.size(); i++) {
            RequestedOutput one = requested.get(i);
            if (one.name().equals(output)) {
                return one.anyPlace()
                        || one.target()
                                .map(target -> target.place().equals(device))
                                .orElse(false);
            }
        }
        return false;
    }

    public boolean contains(String output) {
        for (int i = 0; i < names.size(); i++) {
            if (names.get(i).equals(output)) {
                return true;
            }
        }
        return false;
    }
}
