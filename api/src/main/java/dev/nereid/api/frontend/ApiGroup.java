package dev.nereid.api.frontend;

import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;

/** The parts of the protocols to which access can be restricted. */
public enum ApiGroup {
    /** Liveness and readiness, of the server and of models. */
    HEALTH,
    /** Metadata of the server and of models. */
    METADATA,
    /** Inference in every form. */
    INFERENCE,
    /** Registration of shared memory. */
    SHARED_MEMORY,
    /** Configurations of models. */
    MODEL_CONFIG,
    /** Index, load and unload. */
    MODEL_REPOSITORY,
    /** Statistics. */
    STATISTICS,
    /** Trace settings. */
    TRACE,
    /** Log settings. */
    LOGGING;

    private final String text = name().toLowerCase(Locale.ROOT).replace('_', '-');

    /**
     * Finds a group by its name in flags.
     *
     * @param text for instance {@code model-repository}
     * @return the group, if there is one
     */
    public static Optional<ApiGroup> ofText(String text) {
        return Arrays.stream(values()).filter(group -> group.text.equals(text)).findFirst();
    }

    /** Returns the name in flags, for instance {@code model-repository}. */
    @Override
    public String toString() {
        return text;
    }
}
