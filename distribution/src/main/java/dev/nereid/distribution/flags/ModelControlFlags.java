package dev.nereid.distribution.flags;

import dev.nereid.distribution.process.StartException;
import dev.nereid.server.options.ModelControlMode;
import dev.nereid.server.options.ModelControlOptions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** Flags of loading and unloading while the server runs. Written by the command line reader, then only read. */
final class ModelControlFlags {
    private final List<String> startupModels = new ArrayList<>();
    private ModelControlMode mode = ModelControlMode.NONE;
    private Duration pollInterval = ModelControlOptions.DEFAULT.pollInterval();
    private int retries;
    private boolean namespacing;

    /** Adds the flags that set these fields. */
    void declare(Flags flags) {
        flags.add(
                Flag.of(
                        "--model-control-mode",
                        FlagValue.CONTROL_MODE,
                        "When models are loaded. none: all of them at the start. poll: the same, and then as the"
                                + " repository changes. explicit: those of --load-model at the start, and then at the"
                                + " request of clients. Default: none.",
                        value -> mode = value),
                Flag.of(
                        "--repository-poll-secs",
                        FlagValue.SECONDS,
                        "The seconds between two looks at the repository under --model-control-mode=poll. Default: 15.",
                        value -> pollInterval = value),
                Flag.of(
                        "--load-model",
                        FlagValue.text("NAME"),
                        "A model to be loaded at the start under --model-control-mode=explicit; * for all. May be given"
                                + " several times.",
                        startupModels::add),
                Flag.of(
                        "--model-load-retry-count",
                        FlagValue.NUMBER,
                        "How often the load of a model version that failed is tried again. Default: 0.",
                        value -> retries = value),
                Flag.of(
                        "--model-namespacing",
                        FlagValue.TRUTH,
                        "Whether models of different repositories may have the same name. Requests then name only models"
                                + " whose name is unique; ensembles use the models of their own repository. Default:"
                                + " false.",
                        value -> namespacing = value));
    }

    /** Returns whether models of different repositories may have the same name. */
    boolean hasNamespaces() {
        return namespacing;
    }

    /**
     * Returns the options.
     *
     * @throws StartException if the flags do not fit each other
     */
    ModelControlOptions options() throws StartException {
        if (!startupModels.isEmpty() && mode != ModelControlMode.EXPLICIT) {
            throw new StartException("--load-model: '" + startupModels.getFirst()
                    + "' (expected: only with --model-control-mode=explicit)");
        }
        if (startupModels.contains(ModelControlOptions.ALL) && startupModels.size() > 1) {
            throw new StartException("--load-model: " + startupModels + " (expected: '*' alone, or names)");
        }
        Duration interval = pollInterval;
        if (!interval.isPositive()) {
            if (mode == ModelControlMode.POLL) {
                throw new StartException(
                        "--repository-poll-secs: '" + interval.toSeconds() + "' (expected: 1 or more)");
            }
            interval = ModelControlOptions.DEFAULT.pollInterval();
        }
        return new ModelControlOptions(
                mode, startupModels, interval, ModelControlOptions.DEFAULT.stabilityWindow(), retries);
    }
}
