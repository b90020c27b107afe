package dev.nereid.repository;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import inference.ModelConfig;
import inference.ModelVersionPolicy;
import java.util.List;
import java.util.NavigableSet;
import java.util.TreeSet;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Selects the versions of a model to serve. Static functions only. */
public final class VersionPolicy {
    private static final Logger LOG = LoggerFactory.getLogger(VersionPolicy.class);

    /** The beginning of the reference server's text. */
    private static final String NONE_LEFT =
            "at least one version must be available under the version policy of model '";

    private VersionPolicy() {}

    /** Returns whether {@link #select} refused a model, since no version was left. */
    public static boolean isNoneLeft(InferenceException failure) {
        return failure.publicMessage().startsWith(NONE_LEFT);
    }

    /**
     * Selects the versions of a model by its configuration.
     *
     * @param config a normalized configuration
     * @return the selected versions, at least one
     * @throws InferenceException if none is left
     */
    public static NavigableSet<Long> select(ModelConfig config, NavigableSet<Long> existing) {
        ModelVersionPolicy policy = config.getVersionPolicy();
        NavigableSet<Long> selected = switch (policy.getPolicyChoiceCase()) {
            case SPECIFIC -> specific(config.getName(), policy.getSpecific().getVersionsList(), existing);
            case LATEST -> latest(policy.getLatest().getNumVersions(), existing);
            case ALL -> existing;
            case POLICYCHOICE_NOT_SET -> latest(1, existing);
        };
        if (selected.isEmpty()) {
            throw new InferenceException(ErrorCode.INVALID_ARGUMENT, NONE_LEFT + config.getName() + "'");
        }
        return selected;
    }

    private static NavigableSet<Long> specific(String model, List<Long> configured, NavigableSet<Long> existing) {
        NavigableSet<Long> found = new TreeSet<>();
        for (long version : configured) {
            if (existing.contains(version)) {
                found.add(version);
            } else {
                LOG.atError()
                        .addKeyValue("model", model)
                        .addKeyValue("version", version)
                        .log(
                                "version of the version policy is not in the model directory (model '{}', version {})",
                                model,
                                version);
            }
        }
        return found;
    }

    /** The number is unsigned. */
    private static NavigableSet<Long> latest(int number, NavigableSet<Long> existing) {
        NavigableSet<Long> highest = new TreeSet<>();
        existing.descendingSet().stream().limit(Integer.toUnsignedLong(number)).forEach(highest::add);
        return highest;
    }
}
