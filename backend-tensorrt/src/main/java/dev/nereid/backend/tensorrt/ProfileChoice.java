package dev.nereid.backend.tensorrt;

import dev.nereid.backend.tensorrt.runtime.EngineTensor;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Shape;
import java.util.List;
import java.util.Map;

/**
 * Chooses the optimization profile of an execution: of the profiles that allow all shapes, the one with the nearest
 * optimum. Immutable.
 */
final class ProfileChoice {
    private final List<EngineTensor> inputs;
    private final List<Integer> profiles;

    /** Creates the choice among the numbers of the instance's profiles, in the order of the configuration. */
    ProfileChoice(List<EngineTensor> tensors, List<Integer> profiles) {
        inputs = tensors.stream().filter(EngineTensor::isInput).toList();
        this.profiles = List.copyOf(profiles);
    }

    /** Reads the profiles that a configuration lists; the first one of the engine if it lists none. */
    static List<Integer> read(List<String> configured, int available) {
        if (configured.isEmpty()) {
            return List.of(0);
        }
        for (String profile : configured) {
            int number = number(profile);
            if (number < 0 || number >= available) {
                throw TensorRtErrors.invalid("profile '" + profile + "': the engine has " + available
                        + " optimization profiles (expected: a number from 0 to " + (available - 1) + ")");
            }
        }
        return configured.stream().map(ProfileChoice::number).toList();
    }

    private static int number(String text) {
        try {
            return Integer.parseInt(text);
        } catch (NumberFormatException e) {
            return -1;
        }
    }

    /**
     * Chooses for an execution.
     *
     * @param shapes of each input its shape, or for a shape tensor its values
     * @return the index of the profile in the instance's list
     * @throws BackendException if no profile allows them, with the limits of each
     */
    int choose(Map<String, Shape> shapes) {
        int best = -1;
        long nearest = Long.MAX_VALUE;
        for (int i = 0; i < profiles.size(); i++) {
            long distance = distance(profiles.get(i), shapes);
            if (distance >= 0 && distance < nearest) {
                nearest = distance;
                best = i;
            }
        }
        if (best < 0) {
            throw none(shapes);
        }
        return best;
    }

    /** Returns the distance from the optimum; -1 if a shape is not allowed. */
    private long distance(int profile, Map<String, Shape> shapes) {
        long sum = 0;
        for (EngineTensor input : inputs) {
            Shape shape = shapes.get(input.name());
            if (shape == null || !input.ranges().get(profile).contains(shape)) {
                return -1;
            }
            sum += input.ranges().get(profile).distance(shape);
        }
        return sum;
    }

    private BackendException none(Map<String, Shape> shapes) {
        StringBuilder text = new StringBuilder("no optimization profile of the instance allows the inputs:");
        for (EngineTensor input : inputs) {
            text.append(" '").append(input.name()).append("' ").append(shapes.get(input.name()));
            text.append(" (expected:");
            for (int i = 0; i < profiles.size(); i++) {
                text.append(i == 0 ? " " : " or ").append(input.ranges().get(profiles.get(i)));
            }
            text.append(");");
        }
        text.setLength(text.length() - 1);
        return TensorRtErrors.invalid(text.toString());
    }
}
