package dev.nereid.distribution.flags;

import dev.nereid.distribution.process.ExitStatus;
import dev.nereid.distribution.process.OutOfMemoryExit;
import dev.nereid.server.options.SupervisionOptions;
import java.time.Duration;

/** Flags of fatal errors and of the watchdogs. Written by the command line reader, then only read. */
final class SupervisionFlags {
    private boolean exitOnOutOfMemory = true;
    private Duration executionLimit = SupervisionOptions.DEFAULT.executionLimit();
    private Duration loadLimit = SupervisionOptions.DEFAULT.loadLimit();
    private int pluginThreads = SupervisionOptions.PluginLimits.DEFAULT.threads();
    private int outputCheckInterval = SupervisionOptions.PluginLimits.DEFAULT.outputCheckInterval();

    /** Adds the flags that set these fields. */
    void declare(Flags flags) {
        flags.add("--exit-on-out-of-memory", FlagValue.TRUTH, exitOnOutOfMemory, v -> exitOnOutOfMemory = v)
                .help("Whether the process ends with exit code " + ExitStatus.OUT_OF_MEMORY + " when its heap,"
                        + " metaspace or threads are exhausted, for a supervisor to start it again; otherwise it is"
                        + " not live, refuses requests, and ends when it is stopped.");
        flags.add("--execution-watchdog-secs", FlagValue.SECONDS, executionLimit, v -> executionLimit = v)
                .help("After how long an execution is reported as overdue in the log and in metrics; a model with"
                        + " only overdue instances is not ready. Set for a model by its parameter"
                        + " execution_watchdog_secs. 0: never.");
        flags.add("--load-watchdog-secs", FlagValue.SECONDS, loadLimit, v -> loadLimit = v)
                .help("After how long the load or close of a model version, or an execution of its warm-up, is"
                        + " reported in the log, in metrics and in the repository index. 0: never.");
        flags.add("--plugin-thread-limit", FlagValue.NUMBER, pluginThreads, v -> pluginThreads = v)
                .help("The number of threads of one plugin from which on its models are not ready, until it has ended"
                        + " enough of them. 0: any number.");
        flags.add("--output-check-interval", FlagValue.NUMBER, outputCheckInterval, v -> outputCheckInterval = v)
                .help("One response in this many is checked for outputs that a backend changes after it passed them"
                        + " to the server; then its model is not ready. 0: none; 1: all, as with"
                        + " --poison-freed-memory.");
    }

    /** Returns the supervision of a server, and enables or disables the exit on exhausted memory. */
    SupervisionOptions options(OutOfMemoryExit exit) {
        exit.enable(exitOnOutOfMemory);
        return new SupervisionOptions(executionLimit, loadLimit, exit)
                .withPluginLimits(new SupervisionOptions.PluginLimits(pluginThreads, outputCheckInterval));
    }
}
