package dev.nereid.distribution;

import dev.nereid.distribution.log.LogFactory;
import dev.nereid.distribution.log.LogProvider;
import java.nio.file.Path;
import org.slf4j.LoggerFactory;
import org.slf4j.bridge.SLF4JBridgeHandler;

/**
 * Runs a command line. The only place that touches standard streams, environment, system properties, signals, and the
 * exit of the process.
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
        StopSignal stop = new StopSignal();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> end(stop), "shutdown"));
        int status = ExitStatus.FAILURE;
        try {
            status = new CommandRunner(surroundings(stop)).run(arguments);
        } finally {
            stop.ended(status);
        }
        System.exit(status);
    }

    /**
     * Runs when the process is told to end, by a signal or by the end of its command: waits for the command, and ends
     * the process with its status. Without the halt a process that was told to end, and did, would report a failure.
     */
    private static void end(StopSignal stop) {
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

    private static Surroundings surroundings(StopSignal stop) {
        String version = Main.class.getPackage().getImplementationVersion();
        return new Surroundings(
                System.out,
                System.err,
                System.getenv(),
                Path.of(System.getProperty(HOME, ".")),
                Path.of(
                        System.getProperty("java.io.tmpdir"),
                        "nereid-" + System.getProperty("user.name", "").replaceAll("\\W", "_")),
                version == null ? UNVERSIONED : version,
                Runtime.getRuntime().availableProcessors(),
                Main::setLogLevels,
                stop);
    }

    private static void setLogLevels(String nereid, String libraries) {
        // Named, since a search would open every jar of the class path.
        System.setProperty(LOG_PROVIDER, LogProvider.class.getName());
        System.setProperty(LOG_SETUP_LEVEL, "WARN");
        // On one thread: loggers asked for while another thread sets the log up would be of a kind that replays later.
        if (LoggerFactory.getILoggerFactory() instanceof LogFactory log) {
            log.setLevels(nereid, libraries);
        }
        // The SLF4J of a plugin reads the same property, and its loader does not show it this provider.
        System.clearProperty(LOG_PROVIDER);
        SLF4JBridgeHandler.removeHandlersForRootLogger();
        SLF4JBridgeHandler.install();
    }
}
