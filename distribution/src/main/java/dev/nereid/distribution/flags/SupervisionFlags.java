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

    /** Adds the flags that set these fields. */
    void declare(Flags flags) {
        flags.add(
                Flag.of(
                        "--exit-on-out-of-memory",
                        FlagValue.TRUTH,
                        "Whether the process ends with exit code " + ExitStatus.OUT_OF_MEMORY
                                + " when its heap, metaspace or threads are exhausted, for a supervisor to start it"
                                + " again. Default: true.",
                        value -> exitOnOutOfMemory = value),
                Flag.of(
                        "--execution-watchdog-secs",
                        FlagValue.SECONDS,
                        "After how long an execution is reported as overdue in the log and in metrics; a model with"
                                + " only overdue instances is not ready. Set for a model by its parameter"
                                + " execution_watchdog_secs. 0: never. Default: 30.",
                        value -> executionLimit = value),
                Flag.of(
                        "--load-watchdog-secs",
                        FlagValue.SECONDS,
                        "After how long the load of a model version, or an execution of its warm-up, is reported in the"
                                + " log and in the repository index. 0: never. Default: 300.",
                        value -> loadLimit = value));
    }

    /** Returns the supervision of a server, and enables or disables the exit on exhausted memory. */
    SupervisionOptions options(OutOfMemoryExit exit) {
        exit.enable(exitOnOutOfMemory);
        return new SupervisionOptions(executionLimit, loadLimit, exit, !exitOnOutOfMemory);
    }
}
