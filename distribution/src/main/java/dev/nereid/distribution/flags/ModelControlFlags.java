package dev.nereid.distribution.flags;

import dev.nereid.distribution.process.StartException;
import dev.nereid.server.options.ModelControlMode;
import dev.nereid.server.options.ModelControlOptions;
import dev.nereid.server.options.ServerOptions;
import java.util.List;

/** Flags of loading and unloading while the server runs. Written by the command line reader, then only read. */
final class ModelControlFlags {
    private final ServerOptions.Builder options;

    ModelControlFlags(ServerOptions.Builder options) {
        this.options = options;
    }

    void declare(Flags flags) {
        flags.add("--model-control-mode", FlagValue.CONTROL_MODE, options.controlMode, v -> options.controlMode = v)
                .help("When models are loaded. none: all of them at the start. poll: the same, and then as the"
                        + " repository changes. explicit: those of --load-model at the start, and then at the request"
                        + " of clients. demand: each with its first request; idle ones are unloaded when memory is"
                        + " needed.");
        flags.add("--repository-poll-secs", FlagValue.SECONDS, options.pollInterval, v -> options.pollInterval = v)
                .help("The seconds between two looks at the repository under --model-control-mode=poll; 0: the models"
                        + " are loaded at the start, and the repository is not looked at again.");
        flags.add("--load-model", FlagValue.text("NAME"), options.startupModels::add)
                .help("A model to be loaded at the start under --model-control-mode=explicit; * for all. Under"
                        + " demand, it is never unloaded to free memory. May be given several times.");
        flags.add(
                        "--model-memory-budget",
                        FlagValue.AMOUNT_OF_BYTES,
                        options.memoryBudget,
                        v -> options.memoryBudget = v)
                .help("The memory that loaded models may take together under --model-control-mode=demand: the least"
                        + " recently used idle models are unloaded to stay below it. 0: no limit.");
        flags.add("--model-load-wait-secs", FlagValue.SECONDS, options.maxWait, v -> options.maxWait = v)
                .help("The seconds that a request waits for the load of its model at most under"
                        + " --model-control-mode=demand.");
        flags.add("--model-load-retry-count", FlagValue.NUMBER, options.loadRetries, v -> options.loadRetries = v)
                .help("How often the load of a model version that failed is tried again.");
        flags.add("--model-namespacing", FlagValue.TRUTH, options.hasNamespaces, v -> options.hasNamespaces = v)
                .help("Whether models of different repositories may have the same name. Requests then name only"
                        + " models whose name is unique; ensembles use the models of their own repository.");
    }

    /** Checks what depends on several flags, and fails if they do not fit each other. */
    void check() throws StartException {
        List<String> startupModels = options.startupModels;
        boolean isDemand = options.controlMode == ModelControlMode.DEMAND;
        if (!startupModels.isEmpty() && options.controlMode != ModelControlMode.EXPLICIT && !isDemand) {
            throw new StartException("--load-model: '" + startupModels.getFirst()
                    + "' (expected: only with --model-control-mode=explicit or demand)");
        }
        if (options.memoryBudget > 0 && !isDemand) {
            throw new StartException("--model-memory-budget: '" + options.memoryBudget
                    + "' (expected: only with --model-control-mode=demand)");
        }
        if (!options.maxWait.isPositive()) {
            throw new StartException(
                    "--model-load-wait-secs: '" + options.maxWait.toSeconds() + "' (expected: 1 or more)");
        }
        if (startupModels.contains(ModelControlOptions.ALL) && startupModels.size() > 1) {
            throw new StartException("--load-model: " + startupModels + " (expected: '*' alone, or names)");
        }
        if (!options.pollInterval.isPositive()) { // as in the reference server, there is no later scan
            options.controlMode =
                    options.controlMode == ModelControlMode.POLL ? ModelControlMode.NONE : options.controlMode;
            options.pollInterval = new ServerOptions.Builder().pollInterval;
        }
    }
}
