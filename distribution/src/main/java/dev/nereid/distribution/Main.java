package dev.nereid.distribution;

import dev.nereid.distribution.log.LogFactory;
import dev.nereid.distribution.log.LogProvider;
import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.process.ConsoleStreams;
import dev.nereid.distribution.process.ExitStatus;
import dev.nereid.distribution.process.HostInfo;
import dev.nereid.distribution.process.InstallationPaths;
import dev.nereid.distribution.process.OutOfMemoryExit;
import dev.nereid.distribution.process.ProcessShutdown;
import dev.nereid.distribution.process.Signals;
import dev.nereid.distribution.process.SystemExitLogReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.lang.ref.Reference;
import java.nio.file.Path;
import java.util.List;
import org.slf4j.LoggerFactory;
import org.slf4j.bridge.SLF4JBridgeHandler;

/**
 * Entry point of the {@code nereid} program. The only place that touches standard streams, environment, system
 * properties, signals, and the exit of the process.
 */
public final class Main {
    private static final String HOME = "nereid.home";
    private static final String UNVERSIONED = "development";
    private static final String LOG_PROVIDER = "slf4j.provider";
    private static final String LOG_SETUP_LEVEL = "slf4j.internal.verbosity";

    private Main() {}

    /**
     * Runs a command and exits with its status.
     *
     * @param arguments the command and its flags
     */
    public static void main(String[] arguments) {
        ProcessShutdown stop = new ProcessShutdown();
        OutOfMemoryExit fatalExit =
                new OutOfMemoryExit(new FileOutputStream(FileDescriptor.err), Runtime.getRuntime()::halt);
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> died(thread, error, fatalExit));
        SystemExitLogReader exitCalls = new SystemExitLogReader((stack, status) -> onSystemExit(stop, stack, status));
        List.of("INT", "TERM").forEach(signal -> Signals.handle(signal, number -> signalled(stop, number)));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> end(stop), "shutdown"));
        int status = ExitStatus.FAILURE;
        try {
            status = new CommandRunner(commandContext(stop, fatalExit)).run(arguments);
        } catch (RuntimeException | Error e) { // other threads would keep a process without a command
            died(Thread.currentThread(), e, fatalExit);
        } finally {
            stop.commandEnded(status);
            Reference.reachabilityFence(exitCalls);
        }
        System.exit(status);
    }

    /**
     * Runs when the process is told to end, by a signal or by the end of its command: waits for the command, and ends
     * the process with its status. Without the halt a process that was told to end, and did, would report a failure.
     */
    private static void end(ProcessShutdown stop) {
        stop.request();
        int status = ExitStatus.FAILURE;
        try {
            status = stop.awaitEnd();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        System.out.flush();
        System.err.flush();
        Runtime.getRuntime().halt(status);
    }

    /** Ends the process by its first signal, as the JVM does; by the second one at once. */
    private static void signalled(ProcessShutdown stop, int number) {
        int status = ExitStatus.SIGNAL + number;
        if (stop.onSignal()) {
            Runtime.getRuntime().halt(status);
        }
        System.exit(status);
    }

    /** Notes a call of {@link System#exit} by other code than this, on the thread that calls. */
    private static void onSystemExit(ProcessShutdown stop, Throwable stack, int status) {
        if (stop.onSystemExit(status)) {
            LoggerFactory.getLogger(Main.class)
                    .atError()
                    .addKeyValue("thread", Thread.currentThread().getName())
                    .addKeyValue("status", status)
                    .setCause(stack)
                    .log("process is ended by a call of System.exit");
        }
    }

    private static void died(Thread thread, Throwable error, OutOfMemoryExit fatalExit) {
        fatalExit.check(error);
        LoggerFactory.getLogger(Main.class)
                .atError()
                .addKeyValue("thread", thread.getName())
                .setCause(error)
                .log("thread died");
    }

    private static CommandContext commandContext(ProcessShutdown stop, OutOfMemoryExit fatalExit) {
        String version = Main.class.getPackage().getImplementationVersion();
        return new CommandContext(
                new ConsoleStreams(System.out, System.err),
                System.getenv(),
                new InstallationPaths(
                        Path.of(System.getProperty(HOME, ".")),
                        Path.of(
                                System.getProperty("java.io.tmpdir"),
                                "nereid-" + System.getProperty("user.name", "").replaceAll("\\W", "_"))),
                new HostInfo(
                        version == null ? UNVERSIONED : version,
                        Runtime.getRuntime().availableProcessors()),
                (nereid, libraries) -> setUpLog(nereid, libraries, fatalExit),
                stop,
                fatalExit);
    }

    private static void setUpLog(String nereid, String libraries, OutOfMemoryExit fatalExit) {
        // Named, since a search would open every jar of the class path.
        System.setProperty(LOG_PROVIDER, LogProvider.class.getName());
        System.setProperty(LOG_SETUP_LEVEL, "WARN");
        // On one thread: loggers asked for while another thread sets the log up would be of a kind that replays later.
        if (LoggerFactory.getILoggerFactory() instanceof LogFactory log) {
            log.setLevels(nereid, libraries);
            log.reportFatalErrors(fatalExit);
        }
        // The SLF4J of a plugin reads the same property, and its loader does not show it this provider.
        System.clearProperty(LOG_PROVIDER);
        SLF4JBridgeHandler.removeHandlersForRootLogger();
        SLF4JBridgeHandler.install();
    }
}
